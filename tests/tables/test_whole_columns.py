"""What is done for a whole column of values is what is done for each of them."""

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from mercer.arrays import Rows
from mercer.frames import gaps, is_missing, without_gaps
from mercer.kernels.things.categories import category, levels
from mercer.kernels.things.vocabulary import Vocabulary

VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from(["a", "b", ""]),
    st.one_of(st.just(float("nan")), st.floats(-2.0, 2.0).map(lambda value: round(value, 1))),
    st.sampled_from([np.float64("nan"), np.float64(1.0), np.int64(2), np.bool_(True), np.str_("a")]),
    st.sampled_from([pd.NA, pd.NaT, (1, "a")]),
)


@given(rows=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=8))
def test_categories_of_a_table_are_those_of_its_cells(rows):
    things = np.empty(len(rows), dtype=object)
    things[:] = [list(row) for row in rows]
    found = levels(Rows(things, "X"))
    assert found.shape == (len(rows), 2)
    for row, kept in zip(rows, found.tolist(), strict=True):
        for value, here in zip(row, kept, strict=True):
            wanted = category(value)
            assert (here is None) if wanted is None else (here == wanted and hash(here) == hash(wanted))


@given(st.lists(VALUES, max_size=8))
def test_gaps_of_many_values_are_the_missing_ones(values):
    wanted = [is_missing(value) for value in values]
    assert gaps(values).tolist() == wanted
    kept = list(without_gaps(values))
    assert [value is None for value in kept] == wanted


@given(st.lists(st.sampled_from(["a", "b", 1, 1.0, True, None, (0, "a")]), max_size=12), st.booleans())
def test_columns_of_several_features_are_those_of_each(features, closed):
    many, one = Vocabulary(), Vocabulary()
    for words in (many, one):
        words.column("b")
    if closed:
        many, one = many.closed(), one.closed()
    assert many.columns(features).tolist() == [one.column(feature) for feature in features]
    assert many.features() == one.features()
