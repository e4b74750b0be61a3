"""Drop-in modules for users of CRFsuite, python-crfsuite and sklearn-crfsuite.

`crfkit.compat.crfsuite` reads and writes ``.crfsuite`` models, `crfkit.compat.sklearn_crfsuite` and
`crfkit.compat.pycrfsuite` have the names of those packages.
"""
