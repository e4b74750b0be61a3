"""All contact with the compiler: the kernel decorator, and vectors of eight numbers."""
