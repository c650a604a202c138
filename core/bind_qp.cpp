// The working-set solver as one Python function with two spellings of K: an array, or a program on data.
#include "bind_problems.hpp"

namespace mercer {
namespace {

template <class T> bool dense(nb::handle K, In<T, 2>& a) {
    if (!is_array(K, a)) return false;
    if (a.shape(0) != a.shape(1))
        bad("K has shape " + shape_of(int64_t(a.shape(0)), int64_t(a.shape(1))) + "; it must be square");
    return true;
}

}  // namespace

void bind_qp(nb::module_& m) {
    m.def(
        "solve_qps",
        [](nb::handle K, nb::sequence problems, double tol, std::optional<double> gap_tol, int64_t max_iter,
           std::optional<double> max_seconds, int64_t cache_bytes, int threads, nb::object callback) {
            Listener listener{callback, std::nullopt};
            const StatedProblems stated(problems);
            const QpOptions o = options(tol, gap_tol, max_iter, max_seconds, cache_bytes, threads, listener);
            In<double, 2> k64;
            In<float, 2> k32;
            auto run = [&](const auto* entries, int64_t n) {
                return solve_unlocked(stated, listener,
                                      [&] { return solve_qps(stated.problems, o, entries, n); });
            };
            if (dense(K, k64)) return run(k64.data(), int64_t(k64.shape(0)));
            if (!dense(K, k32)) bad("K must be a C-contiguous float64 or float32 array of 2 axes");
            return run(k32.data(), int64_t(k32.shape(0)));
        },
        "K"_a, "problems"_a, "tol"_a = 1e-3, "gap_tol"_a.none() = nb::none(), "max_iter"_a = -1,
        "max_seconds"_a.none() = nb::none(), "cache_bytes"_a = int64_t(1) << 28, "threads"_a = 1,
        "callback"_a.none() = nb::none(),
        "min 1/2 a'Qa + p'a, 0 <= a <= C, Q_ij = s_i s_j K[r_i, r_j], "
        "for each (r, s, p, C, a, equality) of a list.  a is the start and is overwritten.");
    m.def(
        "solve_qps_tiles",
        [](const Program& program, nb::handle views, nb::handle row_vectors, nb::handle columns,
           nb::sequence problems, double tol, std::optional<double> gap_tol, int64_t max_iter,
           std::optional<double> max_seconds, int64_t cache_bytes, int threads, nb::object callback) {
            Listener listener{callback, std::nullopt};
            const StatedProblems stated(problems);
            const QpOptions o = options(tol, gap_tol, max_iter, max_seconds, cache_bytes, threads, listener);
            auto run = [&]<class T>(T) {
                auto args = arguments<T>(views, row_vectors, columns);
                for (const ProblemArrays& a : stated.arrays) args.refuse_overlap(a.alpha, "alpha");
                return solve_unlocked(stated, listener,
                                      [&] { return solve_qps<T>(stated.problems, o, program, args.in); });
            };
            return single(views, row_vectors) ? run(float()) : run(double());
        },
        "program"_a, "views"_a, "row_vectors"_a, "columns"_a, "problems"_a, "tol"_a = 1e-3,
        "gap_tol"_a.none() = nb::none(), "max_iter"_a = -1, "max_seconds"_a.none() = nb::none(),
        "cache_bytes"_a = int64_t(1) << 28, "threads"_a = 1, "callback"_a.none() = nb::none(),
        "solve_qps with K given as a program on data, as `gram` takes it; "
        "rows of K are computed when needed.");
}

}  // namespace mercer
