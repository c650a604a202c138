// The outer loop of the working-set solver for one problem; qp.hpp states the problem,
// qp_kernels.hpp the inner one.
#pragma once
#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>

#include "qp_cache.hpp"
#include "qp_iterate.hpp"
#include "qp_working_set.hpp"

namespace mercer {

template <class T> class QpSolver : private QpIterate {
  public:
    QpSolver(const QpProblem& p, const QpOptions& o, RowSource<T>& s, QpMemory& memory)
        : QpIterate(p, s.n, s.diag, s.norm), options_(o), source_(s),
          cache_(s.n, o.cache_bytes / o.sharing, s.cheap, memory.rows), start_(Clock::now()),
          max_steps_(o.max_iter >= 0 ? o.max_iter : std::max<int64_t>(100'000'000, 1000 * p.variables)),
          tol_(o.tol), working_(p, s, memory) {}

    // Whether float32 rows turned out too coarse for the tolerance; go on with float64 from problem.alpha.
    bool rows_too_coarse = false;

    QpResult solve() {
        QpResult out;
        const char* status = nullptr;
        try {
            refresh();
            out.objective = objective_ = value_of_objective();
            status = N_ <= kAtOnce ? solve_at_once() : solve_by_working_sets();
            if (!fresh_) refresh();
        } catch (const Interrupted&) {
            status = "interrupted";
        }
        if (!fresh_) {
            // Stopped midway: the certificate still deserves a true f, unless the user insists.
            try {
                update_beta();
                refresh();
            } catch (const Interrupted&) {
                spread_f();
            }
        }
        everything_active();
        scan();
        out.status = status;
        if (std::string(status) == "floor" && kkt_ <= options_.tol && near_optimum())
            out.status = "converged";
        if (nonfinite_) out.status = "nonfinite";
        out.kkt = kkt_, out.worst = worst_, out.gap = gap();
        out.objective = value_of_objective();
        out.iterations = steps_, out.outer = outer_, out.kernel_rows = rows_computed_;
        out.f.resize(size_t(N_));
        for (int64_t i = 0; i < N_; ++i) out.f[size_t(i)] = f_[size_t(p_.rows[i])];
        for (int64_t i = 0; i < N_; ++i) p_.alpha[i] = std::abs(x_[size_t(i)]);
        out.seconds = seconds();
        return out;
    }

  private:
    using Clock = std::chrono::steady_clock;
    enum Step { kMoved, kStuck, kUnbounded };

    static constexpr int64_t kWorkingSet = 1024;
    // Up to this many variables the working set is everything: half as many again as in a working set cost
    // less than to choose among them.
    static constexpr int64_t kAtOnce = 1536;
    // An inner problem ends when its violation is this part of the outer one.
    static constexpr double kDepth = 0.1;
    static constexpr int64_t kShrinkEvery = 4;
    static constexpr double kSameObjective = 1e-14;
    // How often an inner problem may be solved and f then say that it is not, before another arithmetic.
    static constexpr int kPatience = 3;
    // The largest |v| / target of an inner problem in float32, which tells 1e-7 of v; steps add up some of
    // it.
    static constexpr double kFloat32 = 1e4;
    inline static const Poll kNoPoll{};

    // ---- f, exactly ------------------------------------------------------------------------------------

    // f = K beta in float64 for every row: what changed since the last time is added.
    void refresh() {
        update_beta();
        std::vector<int64_t> which;
        std::vector<double> d;
        for (int64_t r = 0; r < n_; ++r)
            if (beta_[size_t(r)] != beta_known_[size_t(r)])
                which.push_back(r), d.push_back(beta_[size_t(r)] - beta_known_[size_t(r)]);
        std::vector<double> f = f_known_;
        if (!which.empty()) source_.apply(which, d, f.data(), options_.threads, options_.poll);
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
        if (options_.gap_tol >= 0 && gap() <= options_.gap_tol * std::abs(objective_)) return true;
        if (!(kkt_ <= share * tol_)) return false;
        if (near_optimum()) return true;
        tol_ = 0.1 * kkt_;
        return false;
    }

    // ---- the working set -------------------------------------------------------------------------------

    void load(const std::vector<int64_t>& set) {
        std::vector<int64_t> groups[2];
        for (int64_t i : set) groups[group(i)].push_back(i);
        working_.assign(groups[0], groups[1]);
        for (int64_t k = 0; k < working_.size(); ++k) {
            const int64_t i = working_.variable[size_t(k)];
            if (i < 0) continue;
            const size_t a = size_t(k), b = size_t(i);
            working_.diag[a] = double(T(source_.diag[size_t(p_.rows[i])]));
            working_.v[a] = v_[b];
            working_.value[a] = x_[b];
            working_.lo[a] = lo_[b];
            working_.hi[a] = hi_[b];
            if (x_[b] < hi_[b]) working_.rise[a] = 0;
            if (x_[b] > lo_[b]) working_.fall[a] = 0;
        }
    }
    void compute_block(const std::vector<int64_t>& rows) {
        working_.compute_block(rows, row_number_, options_.threads, options_.poll);
    }
    struct InnerResult {
        int64_t steps;
        double violation;
        bool unbounded, stuck;
    };
    template <class R>
    InnerResult run_kernel(void (*solve)(Inner<T, R>&), const R* diag, R* v, R* rise, R* fall, double target,
                           int64_t most) {
        Inner<T, R> p{};
        p.equality = p_.equality;
        p.q = working_.size();
        p.split = working_.split;
        p.K = working_.rows.data();
        p.fetch_row = [](void* set, int64_t k) { return static_cast<WorkingSet<T>*>(set)->copy_row(k); };
        p.source = &working_;
        p.diag = diag;
        p.v = v;
        p.rise = rise;
        p.fall = fall;
        p.value = working_.value.data();
        p.lo = working_.lo.data();
        p.hi = working_.hi.data();
        p.tau = kQpTau * (top_diag_active_ > 0 ? top_diag_active_ : 1.0);
        p.target = target;
        p.most = std::min(most, max_steps_ - steps_);
        solve(p);
        steps_ += p.steps;
        objective_ -= p.decrease;
        if (p.steps > 0) fresh_ = false;
        return {p.steps, p.violation, p.unbounded, p.stuck};
    }
    // Solves the inner problem; in float32 where the target is far above its rounding.  Afterwards only the
    // values of the working set are up to date: load() it again before the next one.
    InnerResult solve_inner(double target, int64_t most) {
        const double middle = p_.equality == 1 ? 0.5 * (top_[0] + bottom_[0]) : 0;
        double size = 0;
        for (double& v : working_.v) v -= middle, size = std::max(size, std::abs(v));
        InnerResult result;
        if (!float64_only_ && size <= kFloat32 * target && top_diag_active_ < 1e15) {
            const LineVector<double>* from[] = {&working_.diag, &working_.v, &working_.rise, &working_.fall};
            for (int k = 0; k < 4; ++k) working_.float32[k].assign(from[k]->begin(), from[k]->end());
            auto& a = working_.float32;
            result = run_kernel<float>(qp_kernels<T>().fast, a[0].data(), a[1].data(), a[2].data(),
                                       a[3].data(), target, most);
        } else {
            result = run_kernel<double>(qp_kernels<T>().inner, working_.diag.data(), working_.v.data(),
                                        working_.rise.data(), working_.fall.data(), target, most);
        }
        for (int64_t k = 0; k < working_.size(); ++k)
            if (working_.variable[size_t(k)] >= 0)
                x_[size_t(working_.variable[size_t(k)])] = working_.value[size_t(k)];
        return result;
    }

    // ---- stopping --------------------------------------------------------------------------------------

    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

    // A reason to stop that has nothing to do with optimality, or null.  Polls every 50 ms,
    // reports every 200 ms.
    const char* reason_to_stop() {
        if (nonfinite_) return "nonfinite";
        if (steps_ >= max_steps_) return "max_iter";
        const double now = seconds();
        if (options_.max_seconds >= 0 && now >= options_.max_seconds) return "max_seconds";
        if (options_.poll && now >= next_poll_) {
            next_poll_ = now + 0.05;
            if (options_.poll()) return "interrupted";
        }
        if (options_.report && now >= next_report_) {
            next_report_ = now + 0.2;
            if (options_.report(steps_, kkt_, objective_)) return "stopped";
        }
        return nullptr;
    }

    // ---- the two loops ---------------------------------------------------------------------------------

    // Few variables: all of them are the working set.  Solved in stretches, f computed anew after each; where
    // a stretch is solved and f then says that it is not, the next one is solved further, then in float64
    // throughout, then (by the caller) on float64 rows.  What even that leaves is rounding.
    const char* solve_at_once() {
        double before = kInf;
        int failures = 0;
        bool solved = false;
        for (;;) {
            scan();
            if (good_enough(1.0)) return "converged";
            if (const char* why = reason_to_stop()) return why;
            if (kkt_ <= rounding()) return "floor";
            if (solved && !(kkt_ < 0.5 * before) && ++failures >= kPatience) {
                if (float64_only_) {
                    rows_too_coarse = !source_.exact;
                    return "floor";
                }
                float64_only_ = true;
                failures = 0;
            }
            if (failures > 0) recompute();
            before = kkt_;
            load(active_);
            if (source_.stored) {
                working_.use_rows_on_demand();
            } else {
                if (!working_.has_block()) compute_block(rows_of(active_));
                working_.use_block();
            }
            const double goal = options_.gap_tol >= 0 ? std::max(tol_, 0.1 * kkt_) : tol_;
            const double last = objective_;
            const InnerResult result = solve_inner(std::ldexp(goal, -failures), unlimited_ ? 2000 : 20000);
            if (result.unbounded) return "unbounded";
            refresh();
            solved = result.stuck || result.violation <= goal || !lower_than(last);
            if (unlimited_) {
                if (rescale()) return "unbounded";
                solved = false;
            }
        }
    }
    // Whether the objective fell by more than its rounding since it had this value.
    bool lower_than(double last) const { return objective_ < last - kSameObjective * std::abs(last); }
    // Many variables: working sets, shrinking, and an exact look at everything before the end.
    const char* solve_by_working_sets() {
        // Of all the bytes, not of this problem's share: the number of threads must not show.
        const int64_t fit = RowCache<T>::affordable(options_.cache_bytes, n_);
        const int64_t q = std::min({kWorkingSet, N_, std::max<int64_t>(2, fit)});
        columns_changed_ = true;
        // With rows in float32, look closer before f is computed anew.
        const double rehearsal = source_.exact ? 1.0 : 0.9;
        double best = kInf, last_exact = kInf, mark = objective_;
        int64_t since_best = 0, since_shrink = 0, rounds = 0;
        for (;; ++outer_) {
            if (columns_changed_) {
                source_.focus(columns_);
                cache_.reset(int64_t(columns_.size()), q);
                columns_changed_ = false;
            }
            scan();
            if (const char* why = reason_to_stop()) return why;
            const bool bottom = stalled_ || kkt_ <= rounding();
            if (good_enough(fresh_ ? 1.0 : rehearsal) || (bottom && !fresh_)) {
                if (fresh_) return "converged";
                refresh();
                scan();
                if (good_enough(1.0)) return "converged";
                if (kkt_ <= rounding()) return "floor";
                if (!source_.exact && ++rounds > 3 && kkt_ > 0.25 * last_exact) {
                    rows_too_coarse = true;
                    return "floor";
                }
                if (source_.exact && bottom) return "floor";
                last_exact = kkt_;
                stalled_ = false;
                since_shrink = 0;
                best = kInf;
                continue;
            }
            if (bottom) {
                rows_too_coarse = stalled_ && !source_.exact;
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
            if (unlimited_ && rescale()) return "unbounded";
            if (++since_shrink % kShrinkEvery == 0) shrink_columns();
            if (columns_changed_) continue;
            const Step step = sweep(q);
            if (step == kUnbounded) return "unbounded";
            stalled_ = step == kStuck && float64_only_;
            float64_only_ |= step == kStuck;
        }
    }

    void shrink_columns() {
        const std::vector<int64_t> positions = shrink();
        if (positions.empty()) return;
        cache_.narrow(positions, column_of_row_, options_.threads);
        source_.focus(columns_);
    }

    // One working set: K[W, W], the inner problem, then the rows of the variables that moved bring
    // f up to date.
    Step sweep(int64_t q) {
        const std::vector<int64_t> set = choose(q);
        const std::vector<int64_t> rows = rows_of(set);
        load(set);
        compute_block(rows);
        working_.use_block();
        std::vector<double> d(rows.size(), 0.0), before;
        for (int64_t i : set) before.push_back(x_[size_t(i)]);
        const InnerResult result = solve_inner(std::max(kDepth * kkt_, 0.5 * tol_), 50 * q);
        for (size_t k = 0; k < set.size(); ++k)
            d[size_t(row_number_[size_t(p_.rows[set[k]])])] += x_[size_t(set[k])] - before[k];
        last_set_ = set;
        // Asked of the variables: a row may stay as it is while two variables of it move.
        bool still = true;
        for (size_t k = 0; k < set.size(); ++k) still &= x_[size_t(set[k])] == before[k];
        std::vector<int64_t> moved;
        for (size_t w = 0; w < rows.size(); ++w)
            if (d[w] != 0) d[moved.size()] = d[w], moved.push_back(rows[w]);
        std::vector<const T*> pointers;
        try {
            rows_computed_ += cache_.fetch(moved, pointers, source_, options_.threads, options_.poll);
        } catch (const Interrupted&) {  // x and f stay together
            for (size_t k = 0; k < set.size(); ++k) x_[size_t(set[k])] = before[k];
            throw;
        }
        const int64_t width = int64_t(columns_.size()), chunk = 512, count = int64_t(moved.size());
        Crew crew(crew_size(options_.threads, count * width), kNoPoll);
        crew.run((width + chunk - 1) / chunk, [&](int, auto& take) {
            for (int64_t t; (t = take()) >= 0;)
                qp_kernels<T>().accumulate(pointers.data(), d.data(), count, t * chunk,
                                           std::min(width, (t + 1) * chunk), f_active_.data());
        });
        if (result.unbounded) return kUnbounded;
        return still ? kStuck : kMoved;
    }

    const QpOptions& options_;
    RowSource<T>& source_;
    RowCache<T> cache_;
    Clock::time_point start_;
    double next_poll_ = 0.05, next_report_ = 0.2;
    bool stalled_ = false, float64_only_ = false;
    int64_t steps_ = 0, max_steps_ = 0, outer_ = 0, rows_computed_ = 0;
    double tol_;  // the violation asked for: that of the caller, or less where the gap needs it
    WorkingSet<T> working_;
};

}  // namespace mercer
