"""A model behind HTTP: `mercer serve model.mercer`, or `make_app(model)` in a server of your own.

limits      how much one request may ask for, and how many are in hand at once
columns     what the model reads: names, types, which may be missing
schema      the same as pydantic models, which check bodies and are shown as OpenAPI
bodies      bytes become rows, or a refusal in a sentence with row and column
served      the model that answers
page        the page at /
app         the routes
"""
