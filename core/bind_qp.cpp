// The working-set solver as one Python function with two spellings of K: an array, or a program on data.
#include <cmath>
#include <deque>
#include <optional>

#include "bind_args.hpp"
#include "qp.hpp"
#include "qp_newton.hpp"

namespace mercer {
namespace {

// Signals and callbacks of one solve.  A KeyboardInterrupt is an answer (stop, keep the iterate); any other
// exception of a signal handler or of the callback stops the solver too and is raised once it has returned.
struct Listener {
    nb::object callback;
    std::optional<nb::python_error> pending;

    bool poll() {
        nb::gil_scoped_acquire lock;
        if (pending) return true;
        if (PyErr_CheckSignals() == 0) return false;
        nb::python_error error;
        if (!error.matches(PyExc_KeyboardInterrupt)) pending.emplace(error);
        return true;
    }
    bool report(int64_t steps, double kkt, double objective) {
        nb::gil_scoped_acquire lock;
        try {
            return nb::cast<bool>(nb::bool_(nb::object(callback(steps, kkt, objective))));
        } catch (nb::python_error& error) {
            if (!error.matches(PyExc_KeyboardInterrupt)) pending.emplace(error);
            return true;
        }
    }
};

struct ProblemArrays {
    In<int64_t, 1> rows;
    In<int8_t, 1> signs;
    In<double, 1> p, C;
    Out<double, 1> alpha;
};

template <class T> In<T, 1> vector_of(nb::handle h, const char* name, const char* type) {
    In<T, 1> a;
    if (!is_array(h, a)) bad(std::string(name) + " must be a contiguous " + type + " array of 1 axis");
    return a;
}

QpProblem problem(ProblemArrays& a, nb::handle rows, nb::handle signs, nb::handle p, nb::handle C,
                  nb::handle alpha, int equality) {
    a.rows = vector_of<int64_t>(rows, "rows", "int64");
    a.signs = vector_of<int8_t>(signs, "signs", "int8");
    a.p = vector_of<double>(p, "p", "float64");
    a.C = vector_of<double>(C, "C", "float64");
    a.alpha = writable<double, 1>(alpha, "alpha");
    const int64_t N = int64_t(a.rows.shape(0));
    need_length(a.signs, "signs", N);
    need_length(a.p, "p", N);
    need_length(a.C, "C", N);
    need_length(a.alpha, "alpha", N);
    if (N == 0) bad("there must be at least one variable");
    const char *q0 = reinterpret_cast<const char*>(a.alpha.data()), *q1 = q0 + a.alpha.nbytes();
    for (const In<double, 1>* other : {&a.p, &a.C}) {
        const char* r = reinterpret_cast<const char*>(other->data());
        if (q0 < r + other->nbytes() && r < q1) bad("alpha overlaps p or C; pass memory of its own");
    }
    return {N, a.rows.data(), a.signs.data(), a.p.data(), a.C.data(), a.alpha.data(), equality};
}

// Problems as Python states them: a list of (rows, signs, p, C, alpha, equality).
struct StatedProblems {
    std::deque<ProblemArrays> arrays;
    std::vector<nb::object> alphas;
    QpProblems problems;

    explicit StatedProblems(nb::sequence given) {
        for (nb::handle h : given) {
            if (!nb::isinstance<nb::tuple>(h) || nb::len(h) != 6)
                bad("a problem is a tuple (rows, signs, p, C, alpha, equality)");
            auto t = nb::borrow<nb::tuple>(h);
            arrays.emplace_back();
            problems.push_back(problem(arrays.back(), t[0], t[1], t[2], t[3], t[4], nb::cast<int>(t[5])));
            alphas.push_back(t[4]);
        }
    }
};

QpOptions options(double tol, std::optional<double> gap_tol, int64_t max_iter,
                  std::optional<double> max_seconds, int64_t cache_bytes, int threads, Listener& listener) {
    if (!(tol >= 0) || !std::isfinite(tol)) bad("tol must be a finite number of at least 0");
    if (gap_tol && (!(*gap_tol >= 0) || !std::isfinite(*gap_tol)))
        bad("gap_tol must be None or a finite number of at least 0");
    if (max_seconds && !(*max_seconds >= 0)) bad("max_seconds must be None or at least 0");
    if (cache_bytes < 0) bad("cache_bytes must be at least 0");
    QpOptions o;
    o.tol = tol;
    o.gap_tol = gap_tol.value_or(-1);
    o.max_iter = max_iter;
    o.max_seconds = max_seconds.value_or(-1);
    o.cache_bytes = cache_bytes;
    o.threads = crew(threads);
    o.poll = [&listener] { return listener.poll(); };
    if (!listener.callback.is_none())
        o.report = [&listener](int64_t steps, double kkt, double objective) {
            return listener.report(steps, kkt, objective);
        };
    return o;
}

nb::dict answer(nb::handle alpha, QpResult& r) {
    nb::dict d;
    const int64_t N = int64_t(r.f.size());
    d["alpha"] = nb::borrow(alpha);
    d["f"] = owned(std::move(r.f), N, -1);
    d["kkt"] = r.kkt;
    d["worst"] = r.worst;
    d["gap"] = r.gap;
    d["iterations"] = r.iterations;
    d["outer_iterations"] = r.outer;
    d["seconds"] = r.seconds;
    d["status"] = r.status;
    d["objective"] = r.objective;
    d["kernel_rows_computed"] = r.kernel_rows;
    return d;
}

template <class F> nb::list solve_unlocked(const StatedProblems& stated, Listener& listener, const F& solve) {
    std::vector<QpResult> results;
    bool stopped = false;
    {
        nb::gil_scoped_release unlocked;
        try {
            results = solve();
        } catch (const Interrupted&) {  // before the first iterate: the start is the answer
            stopped = true;
        }
    }
    if (listener.pending) throw nb::python_error(*listener.pending);
    if (stopped) {
        PyErr_SetNone(PyExc_KeyboardInterrupt);
        throw nb::python_error();
    }
    nb::list out;
    for (size_t k = 0; k < results.size(); ++k) out.append(answer(stated.alphas[k], results[k]));
    return out;
}

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
