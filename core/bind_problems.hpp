// What the bindings of the solvers of large margins share: problems and options as Python states them.
#pragma once
#include <cmath>
#include <deque>
#include <optional>

#include "bind_args.hpp"
#include "qp.hpp"

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

}  // namespace
}  // namespace mercer
