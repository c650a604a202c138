// The outer loop of the working-set solver; qp.hpp states the problem, qp_kernels.hpp the inner one.
#include "qp.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "qp_cache.hpp"
#include "qp_iterate.hpp"

namespace mercer {
namespace {

constexpr int64_t kWorkingSet = 1024;
// An inner problem ends when its violation is this part of the outer one.
constexpr double kDepth = 0.1;
// Up to this many variables the working set is everything.
constexpr int64_t kDirect = 1024;

[[noreturn]] void bad(const std::string& what) { throw std::invalid_argument(what); }

using Clock = std::chrono::steady_clock;

// The q x q problem handed to the inner solver; a variable sits at one place, padding at the others.
template <class T> struct Bench {
    std::vector<int64_t> variable;  // -1 for padding
    std::vector<double> diag, v, value, lo, hi, rise, fall;
    std::vector<const T*> rows;
    std::vector<float> fast[4];  // diag, v, rise, fall in float32
    int64_t split = 0;

    int64_t size() const { return int64_t(variable.size()); }
    void lay(std::vector<int64_t> first, const std::vector<int64_t>& second) {
        variable = std::move(first);
        pad();
        split = size();
        variable.insert(variable.end(), second.begin(), second.end());
        pad();
        const size_t q = variable.size();
        for (auto* a : {&diag, &v, &value, &lo, &hi}) a->assign(q, 0.0);
        rise.assign(q, -kInf);
        fall.assign(q, kInf);
        rows.resize(q);
    }
    void take(const T* block) {
        for (size_t k = 0; k < rows.size(); ++k) rows[k] = block + k * rows.size();
    }

  private:
    void pad() { variable.resize(size_t(round_up(size(), kQpPad)), -1); }
};

template <class T> class Solver : private QpIterate {
  public:
    Solver(const QpProblem& p, const QpOptions& o, RowSource<T>& s)
        : QpIterate(p, s.n, s.diag, s.norm), o_(o), s_(s), cache_(s.n, o.cache_bytes / o.sharing),
          start_(Clock::now()),
          most_(o.max_iter >= 0 ? o.max_iter : std::max<int64_t>(100'000'000, 1000 * p.variables)),
          tol_(o.tol) {}

    // Whether float32 rows turned out too coarse for the tolerance; go on with float64 from problem.alpha.
    bool coarse = false;

    QpResult solve() {
        QpResult out;
        const char* status = nullptr;
        try {
            refresh();
            out.objective = objective_ = value_of_objective();
            status = N_ <= kDirect ? direct() : large();
            if (!fresh_) refresh();
        } catch (const Interrupted&) {
            status = "interrupted";
        }
        if (!fresh_) {  // stopped midway: the certificate still deserves a true f, unless the user insists
            try {
                beta_now();
                refresh();
            } catch (const Interrupted&) {
                f_full();
            }
        }
        everything_active();
        scan();
        out.status = status;
        if (std::string(status) == "floor" && kkt_ <= o_.tol && near_optimum()) out.status = "converged";
        if (broken_) out.status = "nonfinite";
        out.kkt = kkt_, out.worst = worst_, out.gap = gap();
        out.objective = value_of_objective();
        out.iterations = steps_, out.outer = outer_, out.kernel_rows = rows_;
        out.f.resize(size_t(N_));
        for (int64_t i = 0; i < N_; ++i) out.f[size_t(i)] = f_[size_t(p_.rows[i])];
        for (int64_t i = 0; i < N_; ++i) p_.alpha[i] = std::abs(x_[size_t(i)]);
        out.seconds = seconds();
        return out;
    }

  private:
    // ---- f, exactly ------------------------------------------------------------------------------------

    // f = K beta in float64 for every row: what changed since the last time is added.
    void refresh() {
        beta_now();
        std::vector<int64_t> which;
        std::vector<double> d;
        for (int64_t r = 0; r < n_; ++r)
            if (beta_[size_t(r)] != beta_known_[size_t(r)])
                which.push_back(r), d.push_back(beta_[size_t(r)] - beta_known_[size_t(r)]);
        std::vector<double> f = f_known_;
        if (!which.empty()) s_.apply(which, d, f.data(), o_.threads, o_.poll);
        f_known_ = std::move(f);
        beta_known_ = beta_;
        f_ = f_known_;
        objective_ = value_of_objective();
        fresh_ = true;
        everything_active();
    }
    // The same from nothing: what rounding left behind in f when x was larger is gone.
    void recompute() {
        std::fill(beta_known_.begin(), beta_known_.end(), 0.0);
        std::fill(f_known_.begin(), f_known_.end(), 0.0);
        refresh();
    }
    // The violation is small enough, and so is the gap; where it is not, a smaller violation is asked for
    // from now on.
    bool good_enough(double share) {
        if (o_.gap_tol >= 0 && gap() <= o_.gap_tol * std::abs(objective_)) return true;
        if (!(kkt_ <= share * tol_)) return false;
        if (near_optimum()) return true;
        tol_ = 0.1 * kkt_;
        return false;
    }
    // ---- the working set -------------------------------------------------------------------------------

    void lay(const std::vector<int64_t>& set) {
        std::vector<int64_t> groups[2];
        for (int64_t i : set) groups[group(i)].push_back(i);
        desk_.lay(groups[0], groups[1]);
        for (int64_t k = 0; k < desk_.size(); ++k) {
            const int64_t i = desk_.variable[size_t(k)];
            if (i < 0) continue;
            const size_t a = size_t(k), b = size_t(i);
            desk_.diag[a] = double(T(s_.diag[size_t(p_.rows[i])]));
            desk_.v[a] = v_[b], desk_.value[a] = x_[b], desk_.lo[a] = lo_[b], desk_.hi[a] = hi_[b];
            if (x_[b] < hi_[b]) desk_.rise[a] = 0;
            if (x_[b] > lo_[b]) desk_.fall[a] = 0;
        }
    }
    // The block K[W, W] of the variables laid out, from its rows (each once).  Where every variable has a row
    // of its own it is computed in the order of the desk; otherwise the block of the rows is spread.
    void bring(const std::vector<int64_t>& rows) {
        const int64_t q = desk_.size();
        const int64_t padding = std::count(desk_.variable.begin(), desk_.variable.end(), int64_t(-1));
        const bool plain = q - padding == int64_t(rows.size());
        std::vector<int64_t> which = rows;
        if (plain) {
            which.assign(size_t(q), rows[0]);  // padding reads anything: it is never chosen
            for (int64_t k = 0; k < q; ++k)
                if (desk_.variable[size_t(k)] >= 0) which[size_t(k)] = p_.rows[desk_.variable[size_t(k)]];
        }
        const int64_t side = int64_t(which.size());
        if (side * side > square_size_) square_.reset(square_size_ = side * side);
        s_.square(which, square_.get(), o_.threads, o_.poll);
        block_at_ = plain ? square_.get() : spread(square_.get(), side);
    }
    // Rows of K[W, W] one by one, when the inner solver first asks for them.  Every variable is on the desk,
    // so their order never changes and rows that are there stay.
    void gather() {
        const int64_t q = desk_.size();
        if (gathered_.empty()) {
            gathered_.assign(size_t(q), nullptr);
            if (q * q > block_size_) block_.reset(block_size_ = q * q);
            std::vector<int64_t> columns;
            // Padding reads anything.
            for (int64_t i : desk_.variable) columns.push_back(p_.rows[i < 0 ? 0 : i]);
            s_.focus(columns);
            one(0);
        }
        desk_.rows = gathered_;
    }
    const T* one(int64_t k) {
        T* to = block_.get() + k * desk_.size();
        s_.rows({p_.rows[desk_.variable[size_t(k)]]}, &to, 1, kNoPoll);
        return gathered_[size_t(k)] = to;
    }
    const T* spread(const T* square, int64_t rows) {
        const int64_t q = desk_.size();
        std::vector<int64_t> at(size_t(q), 0);
        for (int64_t k = 0; k < q; ++k)
            if (desk_.variable[size_t(k)] >= 0)
                at[size_t(k)] = index_[size_t(p_.rows[desk_.variable[size_t(k)]])];
        if (q * q > block_size_) block_.reset(block_size_ = q * q);
        for (int64_t k = 0; k < q; ++k) {
            if (desk_.variable[size_t(k)] < 0) continue;
            T* to = block_.get() + k * q;
            const T* from = square + at[size_t(k)] * rows;
            for (int64_t l = 0; l < q; ++l) to[l] = from[at[size_t(l)]];
        }
        return block_.get();
    }
    struct Found {
        int64_t steps;
        double violation;
        bool unbounded, stuck;
    };
    template <class R>
    Found run(void (*solve)(Inner<T, R>&), const R* diag, R* v, R* rise, R* fall, double target,
              int64_t most) {
        Inner<T, R> p{};
        p.equality = p_.equality;
        p.q = desk_.size();
        p.split = desk_.split;
        p.K = desk_.rows.data();
        p.bring = [](void* self, int64_t k) { return static_cast<Solver*>(self)->one(k); };
        p.source = this;
        p.diag = diag;
        p.v = v;
        p.rise = rise;
        p.fall = fall;
        p.value = desk_.value.data();
        p.lo = desk_.lo.data();
        p.hi = desk_.hi.data();
        p.tau = kQpTau * (top_near_ > 0 ? top_near_ : 1.0);
        p.target = target;
        p.most = std::min(most, most_ - steps_);
        solve(p);
        steps_ += p.steps;
        objective_ -= p.decrease;
        if (p.steps > 0) fresh_ = false;
        return {p.steps, p.violation, p.unbounded, p.stuck};
    }
    // Solves the inner problem; in float32 where the target is far above its rounding.  Afterwards only the
    // values on the desk are up to date: lay() it again before the next one.
    Found inner(double target, int64_t most) {
        const double middle = p_.equality == 1 ? 0.5 * (top_[0] + bottom_[0]) : 0;
        double size = 0;
        for (double& v : desk_.v) v -= middle, size = std::max(size, std::abs(v));
        Found found;
        if (!careful_ && size <= kFloat32 * target && top_near_ < 1e15) {
            const std::vector<double>* from[] = {&desk_.diag, &desk_.v, &desk_.rise, &desk_.fall};
            for (int k = 0; k < 4; ++k) desk_.fast[k].assign(from[k]->begin(), from[k]->end());
            auto& a = desk_.fast;
            found = run<float>(qp_kernels<T>().fast, a[0].data(), a[1].data(), a[2].data(), a[3].data(),
                               target, most);
        } else {
            found = run<double>(qp_kernels<T>().inner, desk_.diag.data(), desk_.v.data(), desk_.rise.data(),
                                desk_.fall.data(), target, most);
        }
        for (int64_t k = 0; k < desk_.size(); ++k)
            if (desk_.variable[size_t(k)] >= 0)
                x_[size_t(desk_.variable[size_t(k)])] = desk_.value[size_t(k)];
        return found;
    }

    // ---- stopping --------------------------------------------------------------------------------------

    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

    // A reason to stop that has nothing to do with optimality, or null.  Polls every 50 ms,
    // reports every 200 ms.
    const char* outside() {
        if (broken_) return "nonfinite";
        if (steps_ >= most_) return "max_iter";
        const double now = seconds();
        if (o_.max_seconds >= 0 && now >= o_.max_seconds) return "max_seconds";
        if (o_.poll && now >= next_poll_) {
            next_poll_ = now + 0.05;
            if (o_.poll()) return "interrupted";
        }
        if (o_.report && now >= next_report_) {
            next_report_ = now + 0.2;
            if (o_.report(steps_, kkt_, objective_)) return "stopped";
        }
        return nullptr;
    }
    // ---- the two loops ---------------------------------------------------------------------------------

    // Few variables: all of them are the working set.  Solved in stretches, f computed anew after each; where
    // a stretch is solved and f then says that it is not, the next one is solved further, then in float64
    // throughout, then (by the caller) on float64 rows.  What even that leaves is rounding.
    const char* direct() {
        double before = kInf;
        int failures = 0;
        bool solved = false;
        for (;;) {
            scan();
            if (good_enough(1.0)) return "converged";
            if (const char* why = outside()) return why;
            if (kkt_ <= rounding()) return "floor";
            if (solved && !(kkt_ < 0.5 * before) && ++failures >= kFailures) {
                if (careful_) {
                    coarse = !s_.exact;
                    return "floor";
                }
                careful_ = true;
                failures = 0;
            }
            if (failures > 0) recompute();
            before = kkt_;
            lay(active_);
            if (s_.stored) gather();
            else if (!block_at_) bring(rows_of(active_));
            if (!s_.stored) desk_.take(block_at_);
            const double goal = o_.gap_tol >= 0 ? std::max(tol_, 0.1 * kkt_) : tol_;
            const double last = objective_;
            const Found found = inner(std::ldexp(goal, -failures), endless_ ? 2000 : 20000);
            if (found.unbounded) return "unbounded";
            refresh();
            solved = found.stuck || found.violation <= goal || !lower_than(last);
            if (endless_) {
                if (stretch()) return "unbounded";
                solved = false;
            }
        }
    }
    // Whether the objective fell by more than its rounding since it had this value.
    bool lower_than(double last) const { return objective_ < last - kSameObjective * std::abs(last); }
    // Many variables: working sets, shrinking, and an exact look at everything before the end.
    const char* large() {
        // Of all the bytes, not of this problem's share: the number of threads must not show.
        const int64_t fit = RowCache<T>::affordable(o_.cache_bytes, n_);
        const int64_t q = std::min({kWorkingSet, N_, std::max<int64_t>(2, fit)});
        columns_changed_ = true;
        // With rows in float32, look closer before f is computed anew.
        const double rehearsal = s_.exact ? 1.0 : 0.9;
        double best = kInf, last_exact = kInf, mark = objective_;
        int64_t since_best = 0, since_shrink = 0, rounds = 0;
        for (;; ++outer_) {
            if (columns_changed_) {
                s_.focus(columns_);
                cache_.reset(int64_t(columns_.size()), q);
                columns_changed_ = false;
            }
            scan();
            if (const char* why = outside()) return why;
            const bool bottom = stalled_ || kkt_ <= rounding();
            if (good_enough(fresh_ ? 1.0 : rehearsal) || (bottom && !fresh_)) {
                if (fresh_) return "converged";
                refresh();
                scan();
                if (good_enough(1.0)) return "converged";
                if (kkt_ <= rounding()) return "floor";
                if (!s_.exact && ++rounds > 3 && kkt_ > 0.25 * last_exact) {
                    coarse = true;
                    return "floor";
                }
                if (s_.exact && bottom) return "floor";
                last_exact = kkt_;
                stalled_ = false;
                since_shrink = 0;
                best = kInf;
                continue;
            }
            if (bottom) {
                coarse = stalled_ && !s_.exact;
                return "floor";
            }
            if (kkt_ < 0.9 * best) {
                best = kkt_, mark = objective_, since_best = 0;
            } else if (++since_best > 200) {
                // The violation goes up and down; the objective tells whether that leads anywhere.
                stalled_ = !lower_than(mark);
                mark = objective_, since_best = 0;
                if (stalled_) continue;
            }
            if (endless_ && stretch()) return "unbounded";
            if (++since_shrink % kShrinkEvery == 0) rest();
            if (columns_changed_) continue;
            const Step step = sweep(q);
            if (step == kUnbounded) return "unbounded";
            stalled_ = step == kStuck && careful_;
            careful_ |= step == kStuck;
        }
    }

    void rest() {
        const std::vector<int64_t> positions = shrink();
        if (positions.empty()) return;
        cache_.narrow(positions, place_);
        s_.focus(columns_);
    }

    enum Step { kMoved, kStuck, kUnbounded };

    // One working set: K[W, W], the inner problem, then the rows of the variables that moved bring
    // f up to date.
    Step sweep(int64_t q) {
        const std::vector<int64_t> set = choose(q);
        const std::vector<int64_t> rows = rows_of(set);
        lay(set);
        bring(rows);
        desk_.take(block_at_);
        std::vector<double> d(rows.size(), 0.0), before;
        for (int64_t i : set) before.push_back(x_[size_t(i)]);
        const Found found = inner(std::max(kDepth * kkt_, 0.5 * tol_), 50 * q);
        for (size_t k = 0; k < set.size(); ++k)
            d[size_t(index_[size_t(p_.rows[set[k]])])] += x_[size_t(set[k])] - before[k];
        last_ = set;
        bool still = true;  // a row may stay as it is while two variables of it move
        for (size_t k = 0; k < set.size(); ++k) still &= x_[size_t(set[k])] == before[k];
        std::vector<int64_t> moved;
        for (size_t w = 0; w < rows.size(); ++w)
            if (d[w] != 0) d[moved.size()] = d[w], moved.push_back(rows[w]);
        std::vector<const T*> pointers;
        try {
            rows_ += cache_.fetch(moved, pointers, s_, o_.threads, o_.poll);
        } catch (const Interrupted&) {  // x and f stay together
            for (size_t k = 0; k < set.size(); ++k) x_[size_t(set[k])] = before[k];
            throw;
        }
        const int64_t width = int64_t(columns_.size()), chunk = 2048, count = int64_t(moved.size());
        Crew crew(count * width < (1 << 20) ? 1 : o_.threads, kNoPoll);
        crew.run((width + chunk - 1) / chunk, [&](int, auto& take) {
            for (int64_t t; (t = take()) >= 0;)
                qp_kernels<T>().accumulate(pointers.data(), d.data(), count, t * chunk,
                                           std::min(width, (t + 1) * chunk), near_.data());
        });
        if (found.unbounded) return kUnbounded;
        return still ? kStuck : kMoved;
    }

    static constexpr int64_t kShrinkEvery = 4;
    static constexpr double kSameObjective = 1e-14;
    static constexpr int kFailures = 3;      // solved, but not so: so often before another arithmetic
    static constexpr double kFloat32 = 1e4;  // float32 tells 1e-7 of v; steps add up some of it
    inline static const Poll kNoPoll{};

    const QpOptions& o_;
    RowSource<T>& s_;
    RowCache<T> cache_;
    Clock::time_point start_;
    double next_poll_ = 0.05, next_report_ = 0.2;
    bool stalled_ = false, careful_ = false;
    int64_t steps_ = 0, most_ = 0, outer_ = 0, rows_ = 0;
    double tol_;  // the violation asked for: that of the caller, or less where the gap needs it
    Bench<T> desk_;
    Buffer<T> square_, block_;
    int64_t square_size_ = 0, block_size_ = 0;
    const T* block_at_ = nullptr;
    std::vector<const T*> gathered_;
};

}  // namespace

namespace {

// Whether sum(x) is 0 and stays so.
bool balanced(const QpProblem& p) {
    if (p.equality == 0) return false;
    double sum = 0, size = 0;
    for (int64_t i = 0; i < p.variables; ++i) sum += p.signs[i] * p.alpha[i], size += p.alpha[i];
    return std::abs(sum) <= 1e-12 * size;
}

// float32 rows first; where they turn out too coarse or overflow, float64 rows from where
// the first run ended.
//   make(T()) gives the source of rows in precision T
template <class Make> QpResult solve_one(const QpProblem& p, const QpOptions& o, const Make& make) {
    const std::vector<double> start(p.alpha, p.alpha + p.variables);
    QpResult first;
    {
        auto source = make(float());
        if (balanced(p)) source->recentre();
        Solver<float> solver(p, o, *source);
        first = solver.solve();
        const bool overflow = std::string(first.status) == "nonfinite";
        if (!solver.coarse && !overflow) return first;
        if (overflow) std::copy(start.begin(), start.end(), p.alpha);
    }
    QpOptions rest = o;
    if (o.max_iter >= 0) rest.max_iter = std::max<int64_t>(0, o.max_iter - first.iterations);
    if (o.max_seconds >= 0) rest.max_seconds = std::max(0.0, o.max_seconds - first.seconds);
    auto source = make(double());
    if (balanced(p)) source->recentre();
    QpResult second = Solver<double>(p, rest, *source).solve();
    second.iterations += first.iterations;
    second.outer += first.outer;
    second.kernel_rows += first.kernel_rows;
    second.seconds += first.seconds;
    return second;
}

// A problem on the rows of K that it names, and these rows in order.
struct Local {
    std::vector<int64_t> which, rows;
    QpProblem problem;

    Local(const QpProblem& p, int64_t n) : problem(p) {
        check_qp(p, n);
        std::vector<int64_t> number(size_t(n), 0);
        for (int64_t i = 0; i < p.variables; ++i) number[size_t(p.rows[i])] = 1;
        for (int64_t r = 0; r < n; ++r)
            if (number[size_t(r)]) number[size_t(r)] = int64_t(which.size()), which.push_back(r);
        for (int64_t i = 0; i < p.variables; ++i) rows.push_back(number[size_t(p.rows[i])]);
        problem.rows = rows.data();
    }
    Local(const Local&) = delete;
};

// make(T(), which) gives the source of these rows in precision T.
template <class Make>
std::vector<QpResult> solve_each(const QpProblems& problems, int64_t n, const QpOptions& o, bool apart,
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
    const int workers = apart ? std::min<int>(o.threads, int(problems.size())) : 1;
    Crew crew(workers, ask);
    try {
        crew.run(int64_t(problems.size()), [&](int worker, auto& take) {
            for (int64_t t; (t = take()) >= 0; ++done) {
                const Local local(problems[size_t(t)], n);
                QpOptions mine = o;
                mine.poll = worker == 0 ? ask : listen;
                if (apart) mine.threads = 1, mine.sharing = workers;
                if (o.max_seconds >= 0)
                    mine.max_seconds = std::max(
                        0.0, o.max_seconds - std::chrono::duration<double>(Clock::now() - start).count());
                const bool skip = stop;  // what is left keeps its start
                if (skip) mine.max_iter = 0, mine.poll = nullptr;
                QpResult& r = out[size_t(t)];
                r = solve_one(local.problem, mine, [&]<class T>(T) { return make(T(), local.which, mine); });
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
    const bool apart = p.size() > 1 && o.threads > 1 && !o.report;
    return solve_each(p, n, o, apart, [&]<class T>(T, const std::vector<int64_t>& which, const QpOptions&) {
        return dense_rows<T, S>(K, n, which);
    });
}
template <class S>
std::vector<QpResult> solve_qps(const QpProblems& p, const QpOptions& o, const Program& program,
                                const Inputs<S>& data) {
    if (!data.same)
        bad("the solver needs the same observations on both sides: "
            "pass None as the second part of views and rows");
    return solve_each(p, data.n, o, false,
                      [&]<class T>(T, const std::vector<int64_t>& which, const QpOptions& mine) {
                          return tile_rows<T, S>(program, data, which, mine.threads, mine.poll);
                      });
}
template std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const double*, int64_t);
template std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const float*, int64_t);
template std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const Program&,
                                         const Inputs<double>&);
template std::vector<QpResult> solve_qps(const QpProblems&, const QpOptions&, const Program&,
                                         const Inputs<float>&);

}  // namespace mercer
