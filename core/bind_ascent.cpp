// Coordinate ascent as one Python function: rows of features, dense or sparse, and problems on them.
#include "ascent.hpp"
#include "bind_problems.hpp"

namespace mercer {
namespace {

// Rows of features with what they refer to.
template <class T> struct StatedRows {
    In<int32_t, 1> columns;
    std::vector<int32_t> narrowed;  // of int64 columns
    std::vector<int64_t> starts;
    In<T, 1> numbers;
    In<T, 2> dense;
    FeatureRows<T> rows;
};

template <class I> bool increase(const I* columns, int64_t count) {
    bool fine = true;
    for (int64_t k = 1; k < count; ++k) fine &= columns[k - 1] < columns[k];
    return fine;
}

template <class I>
void check_sparse(const I* columns, int64_t count, const std::vector<int64_t>& starts, int64_t stored,
                  int64_t d) {
    if (starts.empty() || starts.front() != 0 || starts.back() > stored || count != stored)
        bad("features: data, indices and indptr do not fit together");
    for (size_t r = 0; r + 1 < starts.size(); ++r) {
        const int64_t begin = starts[r], end = starts[r + 1];
        if (end < begin) bad("features: indptr decreases");
        if (end > stored) bad("features: indptr leads beyond the data");
        if (end == begin) continue;
        if (columns[begin] < 0 || columns[end - 1] >= d || !increase(columns + begin, end - begin))
            bad("features: the columns of a row must increase and lie between 0 and " +
                std::to_string(d - 1));
    }
}

// Columns in int32 are read where they are.
template <class T> const int32_t* stated_columns(nb::handle given, StatedRows<T>& out) {
    const int64_t stored = int64_t(out.numbers.shape(0)), d = out.rows.d;
    if (is_array(given, out.columns)) {
        check_sparse(out.columns.data(), int64_t(out.columns.shape(0)), out.starts, stored, d);
        return out.columns.data();
    }
    const std::vector<int64_t> wide = indices(given, "features indices");
    check_sparse(wide.data(), int64_t(wide.size()), out.starts, stored, d);
    out.narrowed.assign(wide.begin(), wide.end());
    return out.narrowed.data();
}

template <class T> void state(nb::handle given, StatedRows<T>& out) {
    FeatureRows<T>& rows = out.rows;
    if (!nb::isinstance<nb::tuple>(given)) {
        out.dense = array<T, 2>(given, "features");
        rows.n = int64_t(out.dense.shape(0)), rows.d = int64_t(out.dense.shape(1));
        rows.x = out.dense.data();
        return;
    }
    auto t = nb::borrow<nb::tuple>(given);
    out.numbers = array<T, 1>(t[0], "features data");
    out.starts = indices(t[2], "features indptr");
    if (!nb::try_cast(t[3], rows.d, false) || rows.d < 0 || rows.d > std::numeric_limits<int32_t>::max())
        bad("features: ncols must be a number from 0 to 2147483647");
    rows.n = int64_t(out.starts.size()) - 1;
    rows.data = out.numbers.data();
    rows.indices = stated_columns(t[1], out);
    rows.indptr = out.starts.data();
}

bool single_features(nb::handle given) {
    nb::object first = nb::borrow(given);
    if (nb::isinstance<nb::tuple>(given)) {
        if (nb::len(given) != 4) bad("sparse features are (data, indices, indptr, ncols)");
        first = given[0];
    }
    nb::ndarray<nb::ro> a;
    return is_array(first, a) && a.dtype() == nb::dtype<float>();
}

}  // namespace

void bind_ascent(nb::module_& m) {
    m.def(
        "ascend",
        [](nb::handle features, nb::sequence problems, double tol, std::optional<double> gap_tol,
           int64_t max_iter, std::optional<double> max_seconds, int64_t max_numbers, int threads,
           nb::object callback) {
            Listener listener{callback, std::nullopt};
            const StatedProblems stated(problems);
            AscentOptions o;
            static_cast<QpOptions&>(o) = options(tol, gap_tol, max_iter, max_seconds, 0, threads, listener);
            o.max_numbers = max_numbers;
            auto run = [&]<class T>(T) {
                StatedRows<T> given;
                state(features, given);
                return solve_unlocked(stated, listener,
                                      [&] { return ascend<T>(stated.problems, o, given.rows); });
            };
            return single_features(features) ? run(float()) : run(double());
        },
        "features"_a, "problems"_a, "tol"_a = 1e-3, "gap_tol"_a.none() = nb::none(), "max_iter"_a = -1,
        "max_seconds"_a.none() = nb::none(), "max_numbers"_a = -1, "threads"_a = 1,
        "callback"_a.none() = nb::none(),
        "solve_qps for K = F F', with F an array or (data, indices, indptr, ncols), "
        "without a single entry of K.");
}

}  // namespace mercer
