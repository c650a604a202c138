// Many problems on one kernel: each on the rows that it names, in float32 first; qp.hpp states the problem.
#include "qp.hpp"

#include <atomic>

#include "qp_solver.hpp"

namespace mercer {
namespace {

[[noreturn]] void bad(const std::string& what) { throw std::invalid_argument(what); }

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Whether sum(x) is 0 and stays so.
bool balanced(const QpProblem& p) {
    if (p.equality == 0) return false;
    double sum = 0, size = 0;
    for (int64_t i = 0; i < p.variables; ++i) sum += p.signs[i] * p.alpha[i], size += p.alpha[i];
    return std::abs(sum) <= 1e-12 * size;
}

// float32 rows first; where they turn out too coarse or overflow, float64 rows from where the
// first run ended.
//   make(T()) gives the source of rows in precision T
template <class Make>
QpResult solve_one(const QpProblem& p, const QpOptions& o, QpMemory& memory, const Make& make) {
    const std::vector<double> start(p.alpha, p.alpha + p.variables);
    // One solve is many short crews.
    const Team team;
    QpResult first;
    {
        auto source = make(float());
        if (balanced(p)) source->recentre();
        QpSolver<float> solver(p, o, *source, memory);
        first = solver.solve();
        const bool overflow = std::string(first.status) == "nonfinite";
        if (!solver.rows_too_coarse && !overflow) return first;
        if (overflow) std::copy(start.begin(), start.end(), p.alpha);
    }
    QpOptions remaining = o;
    if (o.max_iter >= 0) remaining.max_iter = std::max<int64_t>(0, o.max_iter - first.iterations);
    if (o.max_seconds >= 0) remaining.max_seconds = std::max(0.0, o.max_seconds - first.seconds);
    auto source = make(double());
    if (balanced(p)) source->recentre();
    QpResult second = QpSolver<double>(p, remaining, *source, memory).solve();
    second.iterations += first.iterations;
    second.outer += first.outer;
    second.kernel_rows += first.kernel_rows;
    second.seconds += first.seconds;
    return second;
}

// A problem on the rows of K that it names, and these rows in order.
struct CompactProblem {
    std::vector<int64_t> which, rows;
    QpProblem problem;

    CompactProblem(const QpProblem& p, int64_t n) : problem(p) {
        check_qp(p, n);
        std::vector<int64_t> number(size_t(n), 0);
        for (int64_t i = 0; i < p.variables; ++i) number[size_t(p.rows[i])] = 1;
        for (int64_t r = 0; r < n; ++r)
            if (number[size_t(r)]) number[size_t(r)] = int64_t(which.size()), which.push_back(r);
        for (int64_t i = 0; i < p.variables; ++i) rows.push_back(number[size_t(p.rows[i])]);
        problem.rows = rows.data();
    }
    CompactProblem(const CompactProblem&) = delete;
};

// make(T(), which) gives the source of these rows in precision T.
template <class Make>
std::vector<QpResult> solve_each(const QpProblems& problems, int64_t n, const QpOptions& o,
                                 const Make& make) {
    const auto start = Clock::now();
    std::vector<QpResult> out(problems.size());
    std::atomic<bool> stop{false};
    std::atomic<size_t> done{0};
    const Poll ask = [&] {
        if (o.poll && o.poll()) stop = true;
        return stop.load();
    };
    const Poll listen = [&] { return stop.load(); };
    // Reports would come from several problems at once.
    const int workers = o.report ? 1 : std::min(o.threads, int(problems.size()));
    std::vector<QpMemory> memory(size_t(std::max(workers, 1)));
    Crew crew(workers, ask);
    try {
        crew.run(int64_t(problems.size()), [&](int worker, auto& take) {
            for (int64_t t; (t = take()) >= 0; ++done) {
                const CompactProblem compact(problems[size_t(t)], n);
                QpOptions task = o;
                task.poll = worker == 0 ? ask : listen;
                task.threads = o.threads / workers;
                task.sharing = workers;
                if (o.max_seconds >= 0)
                    task.max_seconds = std::max(0.0, o.max_seconds - seconds_since(start));
                const bool skip = stop;  // what is left keeps its start
                if (skip) task.max_iter = 0, task.poll = nullptr;
                QpResult& r = out[size_t(t)];
                r = solve_one(compact.problem, task, memory[size_t(worker)],
                              [&]<class T>(T) { return make(T(), compact.which, task); });
                if (skip) r.status = "interrupted";
                const std::string status = r.status;
                if (status == "interrupted" || status == "stopped") stop = true;
            }
        });
    } catch (const Interrupted&) {
        if (done < problems.size()) throw;  // before the first iterate of some problem
    }
    return out;
}

}  // namespace

template <class S>
std::vector<QpResult> solve_qps(const QpProblems& p, const QpOptions& o, const S* K, int64_t n) {
    return solve_each(p, n, o, [&]<class T>(T, const std::vector<int64_t>& which, const QpOptions&) {
        return dense_rows<T, S>(K, n, which);
    });
}
template <class S>
std::vector<QpResult> solve_qps(const QpProblems& p, const QpOptions& o, const Program& program,
                                const Inputs<S>& data, bool whole) {
    if (!data.same)
        bad("the solver needs the same observations on both sides: "
            "pass None as the second part of views and rows");
    const auto start = Clock::now();
    QpOptions left = o;
    WholeGram K;
    if (whole) {
        compute_whole(program, data, K, o.threads, o.poll);
        if (o.max_seconds >= 0) left.max_seconds = std::max(0.0, o.max_seconds - seconds_since(start));
    }
    return solve_each(p, data.n, left,
                      [&]<class T>(T, const std::vector<int64_t>& which, const QpOptions& task) {
                          if constexpr (std::is_same_v<T, float>) {
                              if (whole) return kept_rows(K, program, data, which);
                          }
                          return tile_rows<T, S>(program, data, which, task.threads, task.poll);
                      });
}
template std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const double*, int64_t);
template std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const float*, int64_t);
template std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const Program&,
                                         const Inputs<double>&, bool);
template std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const Program&,
                                         const Inputs<float>&, bool);

}  // namespace mercer
