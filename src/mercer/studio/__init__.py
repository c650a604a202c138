"""The studio: kernels you can touch. `mercer studio` opens a page; `mercer.studio(X, y)` is it in a notebook."""
