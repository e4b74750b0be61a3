"""Models of tokens and labels together: hidden Markov models, of which naive Bayes is one."""
