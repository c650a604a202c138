// Coordinate ascent as one Python function: rows of features, dense or sparse, and problems on them.
#include "ascent.hpp"
#include "bind_problems.hpp"

namespace mercer {
namespace {

// Rows of features with what they refer to.
template <class T> struct StatedRows {
    std::vector<int32_t> columns;
    std::vector<int64_t> starts;
    In<T, 1> numbers;
    In<T, 2> dense;
    FeatureRows<T> rows;
};

void check_sparse(const std::vector<int64_t>& columns, const std::vector<int64_t>& starts, int64_t stored,
                  int64_t d) {
    if (starts.empty() || starts.front() != 0 || starts.back() > stored || int64_t(columns.size()) != stored)
        bad("features: data, indices and indptr do not fit together");
    for (size_t r = 0; r + 1 < starts.size(); ++r) {
        if (starts[r + 1] < starts[r]) bad("features: indptr decreases");
        if (starts[r + 1] > stored) bad("features: indptr leads beyond the data");
        for (int64_t k = starts[r]; k < starts[r + 1]; ++k) {
            const int64_t before = k > starts[r] ? columns[size_t(k) - 1] : -1;
            if (columns[size_t(k)] <= before || columns[size_t(k)] >= d)
                bad("features: the columns of a row must increase and lie between 0 and " +
                    std::to_string(d - 1));
        }
    }
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
    const std::vector<int64_t> columns = indices(t[1], "features indices");
    out.starts = indices(t[2], "features indptr");
    if (!nb::try_cast(t[3], rows.d, false) || rows.d < 0 || rows.d > std::numeric_limits<int32_t>::max())
        bad("features: ncols must be a number from 0 to 2147483647");
    check_sparse(columns, out.starts, int64_t(out.numbers.shape(0)), rows.d);
    out.columns.assign(columns.begin(), columns.end());
    rows.n = int64_t(out.starts.size()) - 1;
    rows.data = out.numbers.data();
    rows.indices = out.columns.data();
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
