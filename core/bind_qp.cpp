// The working-set solver as one Python function with two spellings of K: an array, or a program on data.
#include "bind_problems.hpp"
#include "qp_newton.hpp"

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
           std::optional<double> max_seconds, int64_t cache_bytes, int threads, nb::object callback,
           bool whole) {
            Listener listener{callback, std::nullopt};
            const StatedProblems stated(problems);
            const QpOptions o = options(tol, gap_tol, max_iter, max_seconds, cache_bytes, threads, listener);
            auto run = [&]<class T>(T) {
                auto args = arguments<T>(views, row_vectors, columns);
                for (const ProblemArrays& a : stated.arrays) args.refuse_overlap(a.alpha, "alpha");
                return solve_unlocked(stated, listener, [&] {
                    return solve_qps<T>(stated.problems, o, program, args.in, whole);
                });
            };
            return single(views, row_vectors) ? run(float()) : run(double());
        },
        "program"_a, "views"_a, "row_vectors"_a, "columns"_a, "problems"_a, "tol"_a = 1e-3,
        "gap_tol"_a.none() = nb::none(), "max_iter"_a = -1, "max_seconds"_a.none() = nb::none(),
        "cache_bytes"_a = int64_t(1) << 28, "threads"_a = 1, "callback"_a.none() = nb::none(),
        "whole"_a = false,
        "solve_qps with K given as a program on data, as `gram` takes it; "
        "rows of K are computed when needed, or with whole=True all of them once, in float32.");
    m.def(
        "newton_descent",
        [](nb::handle K, nb::tuple stated, nb::handle f, nb::handle free, int64_t limit, int64_t rounds) {
            const In<double, 2> k = array<double, 2>(K, "K");
            if (k.shape(0) != k.shape(1)) bad("K must be square");
            if (nb::len(stated) != 6) bad("a problem is a tuple (rows, signs, p, C, alpha, equality)");
            ProblemArrays arrays;
            const QpProblem q = problem(arrays, stated[0], stated[1], stated[2], stated[3], stated[4],
                                        nb::cast<int>(stated[5]));
            Out<double, 1> image = writable<double, 1>(f, "f");
            need_length(image, "f", q.variables);
            Out<bool, 1> moving;
            if (!is_array(free, moving)) bad("free must be a writable contiguous bool array of 1 axis");
            need_length(moving, "free", q.variables);
            NewtonState state{q.alpha, image.data(), moving.data(), rounds};
            NewtonEnd end;
            {
                nb::gil_scoped_release unlocked;
                end = newton_descent(q, k.data(), int64_t(k.shape(0)), limit, state);
            }
            const char* names[] = {"done", "rounds", "hard"};
            return nb::make_tuple(names[int(end)], state.rounds);
        },
        "K"_a, "problem"_a, "f"_a, "free"_a, "limit"_a, "rounds"_a,
        "Newton's steps on the free variables of one problem of solve_qps, whose a, f = (Kb)[r] and free are "
        "overwritten.  Returns how it ended and the rounds that are left: done, rounds (used up), or hard (a "
        "system that is singular, nearly so, or large).");
}

}  // namespace mercer
