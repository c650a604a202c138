// Coordinate ascent in explicit features; ascent.hpp states the problem, ascent_inner.hpp reads the rows.
#include "ascent.hpp"

#include <atomic>
#include <chrono>
#include <cmath>
#include <string>

#include "ascent_iterate.hpp"
#include "ascent_newton.hpp"

namespace mercer {

namespace baseline { extern const AscentIsa ascent_table; }
#if defined(__x86_64__)
namespace avx2 { extern const AscentIsa ascent_table; }
namespace avx512 { extern const AscentIsa ascent_table; }
#endif

static const AscentIsa& ascent_isa() {
#if defined(__x86_64__)
    const std::string name = current_isa().name;
    if (name == "avx2") return avx2::ascent_table;
    if (name == "avx512") return avx512::ascent_table;
#endif
    return baseline::ascent_table;
}
template <> const AscentKernels<double>& ascent_kernels<double>() { return ascent_isa().f64; }
template <> const AscentKernels<float>& ascent_kernels<float>() { return ascent_isa().f32; }

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

// Whole numbers without a pattern (splitmix64), the same in every run.
class Shuffler {
  public:
    void shuffle(int64_t* values, int64_t count) {
        for (int64_t k = count - 1; k > 0; --k) std::swap(values[k], values[below(k + 1)]);
    }

  private:
    // A number below count, which is below 2^32: the upper half of a product costs less than a division.
    int64_t below(int64_t count) {
        state_ += 0x9e3779b97f4a7c15ULL;
        uint64_t z = state_;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return int64_t(((z ^ (z >> 31)) >> 32) * uint64_t(count) >> 32);
    }
    uint64_t state_ = 1;
};

template <class T> class Ascent : private AscentIterate<T> {
  public:
    Ascent(const QpProblem& p, const AscentOptions& o, const FeatureRows<T>& rows)
        : Base(p, rows), o_(o), start_(Clock::now()), tol_(o.tol),
          most_(o.max_iter >= 0 ? o.max_iter : std::numeric_limits<int64_t>::max()),
          active_(size_t(p.variables)), variables_(size_t(p.variables)) {
        // A step of Newton's method costs more, the more columns there are.
        const int64_t size = rows.d + p.equality;
        enough_ = size <= ProximalStep<T>::kDirect ? 3 + size / 8 : kManySweeps;
    }

    QpResult solve() {
        this->look();
        this->begin_multipliers();
        const char* status = run();
        if (!fresh_) this->look();
        if (status != kConverged) return_to_best();
        if (status == kFloor && kkt_ <= o_.tol && this->near_optimum()) status = kConverged;
        if (nonfinite_) status = "nonfinite";
        QpResult out;
        out.status = status;
        out.kkt = kkt_, out.worst = this->worst_, out.gap = this->gap_, out.objective = objective_;
        out.iterations = moves_, out.outer = sweeps_;
        for (int64_t i = 0; i < N_; ++i) p_.alpha[i] = std::abs(x_[size_t(i)]);
        out.f = std::move(this->f_);
        out.seconds = seconds_since(start_);
        return out;
    }

  private:
    using Base = AscentIterate<T>;
    using Base::fresh_, Base::nonfinite_, Base::kkt_, Base::objective_, Base::x_, Base::N_, Base::p_,
        Base::b_;
    using Base::kInf, Base::kernels_, Base::c_, Base::excess_, Base::numbers_;

    static constexpr const char* kConverged = "converged";
    static constexpr const char* kFloor = "floor";
    // Sweeps end when the pulls of the variables at work are this part of the violation of all of them,
    static constexpr double kDepth = 0.02;
    // or after so many.
    static constexpr int64_t kSweeps = 20;
    // Sweeps before Newton's method where a step of it is dear.
    static constexpr int64_t kManySweeps = 500;
    // The width of the margin, as a part of the violation, that a proximal step smooths.
    static constexpr double kWidth = 0.1;
    // What becomes of the weight of the proximal term where a step takes too long.
    static constexpr double kLess = 0.03;
    // Numbers read between two looks at the clock.
    static constexpr int64_t kStretch = 1 << 18;
    // Looks at everything in a row, with no lower objective and no smaller violation, before what is left
    // counts as rounding.
    static constexpr int kPatience = 8;
    // Of the objective: what is less is rounding.
    static constexpr double kSame = 1e-14;

    // Sweeps or Newton's steps, and a look at everything each time that they seem to have come to an end.
    const char* run() {
        double least = kInf;
        int idle = 0;
        for (;;) {
            if (good_enough()) return kConverged;
            if (const char* why = reason_to_stop()) return why;
            if (kkt_ <= this->rounding()) return kFloor;
            const bool better = keep_best() || kkt_ < 0.9 * least;
            if (!retry_) idle = better ? 0 : idle + 1;
            retry_ = false;
            if (idle >= kPatience) return kFloor;
            least = std::min(least, kkt_);
            const double goal = std::ldexp(std::max(kDepth * kkt_, tol_), -idle);
            // What Newton's method cannot improve, single variables may: they know their pulls to rounding.
            const bool by_coordinates = sweeps_ < enough_ || idle % 2 == 1;
            const char* why = by_coordinates ? sweep_to(goal) : newton(idle);
            if (why) return why;
            if (!fresh_) this->look();
        }
    }

    // Sweeps until all variables at work agree within the goal.
    const char* sweep_to(double goal) {
        for (int64_t i = 0; i < N_; ++i) {
            const size_t k = size_t(i);
            variables_[k] = {x_[k],           this->lo_[k], this->hi_[k],   this->linear_[k],
                             this->curve_[k], p_.rows[k],   this->group_[k]};
        }
        const char* why = visit(goal);
        for (size_t k = 0; k < x_.size(); ++k) x_[k] = variables_[k].value;
        return why;
    }
    // The bounds beyond which a variable rests, of the pulls that variables could follow.
    static double rests_above(double highest) { return highest > 0 ? highest : kInf; }
    static double rests_below(double lowest) { return lowest < 0 ? lowest : -kInf; }

    // A look tells all pulls: what it lets rest is not read.
    const char* visit(double goal) {
        auto pull = [&](size_t k) { return this->v_[k] - b_[this->group_[k]]; };
        double above = rests_above(std::max(this->top_[0] - b_[0], this->top_[1] - b_[1]));
        double below = rests_below(std::min(this->bottom_[0] - b_[0], this->bottom_[1] - b_[1]));
        int64_t count = 0;
        for (size_t k = 0; k < x_.size(); ++k) {
            const bool rests =
                (x_[k] <= this->lo_[k] && pull(k) < below) || (x_[k] >= this->hi_[k] && pull(k) > above);
            if (!rests) active_[size_t(count++)] = int64_t(k);
        }
        for (int64_t k = 0; k < kSweeps && count > 0; ++k) {
            shuffler_.shuffle(active_.data(), count);
            Sweep<T> s = stated(count, below, above);
            while (s.begin < s.count) {
                s.end = std::min(s.count, s.begin + std::max<int64_t>(1, kStretch / this->numbers_each_));
                s.most = most_ - moves_;
                s.moves = s.numbers = 0;
                fresh_ = false;
                kernels_.sweep(s);
                moves_ += s.moves, numbers_ += s.numbers;
                if (const char* why = reason_to_stop()) return why;
            }
            ++sweeps_;
            count = s.count;
            double off = 0;
            for (int g = 0; g < 2; ++g) {
                off = std::max(off, c_ * std::abs(excess_[g]));
                b_[g] += c_ * excess_[g];
            }
            if (std::max(s.highest, 0.0) - std::min(s.lowest, 0.0) <= goal && off <= goal) return nullptr;
            above = rests_above(s.highest);
            below = rests_below(s.lowest);
        }
        return nullptr;
    }

    Sweep<T> stated(int64_t count, double below, double above) {
        Sweep<T> s{};
        s.rows = &this->rows_;
        s.variables = variables_.data();
        s.w = this->w_.data();
        s.b = b_, s.excess = excess_, s.c = c_;
        s.active = active_.data(), s.count = count;
        s.below = below, s.above = above;
        s.highest = -kInf, s.lowest = kInf;
        return s;
    }

    // One step of the proximal point method; its term is the weaker, the nearer the optimum.
    const char* newton(int idle) {
        double most = 0, widest = 0;
        for (size_t i = 0; i < x_.size(); ++i) {
            most = std::max(most, std::abs(x_[i]));
            widest = std::max(widest, this->hi_[i] - this->lo_[i]);
        }
        const double square = this->longest_ * this->longest_;
        if (!(most > 0)) most = square > 0 ? std::min(widest, 1 / square) : widest;
        double prox = std::max(most / (kWidth * kkt_), prox_);
        if (prox_ > 0) prox = std::min(prox, 100 * prox_);
        prox_ = std::min(square > 0 ? std::min(prox, 1e13 / square) : prox, limit_);
        limit_ *= 2;
        // A pull is known to rounding, and x to `prox` times that: what leads nowhere is tried with less.
        const double taken = prox_ * std::pow(0.1, idle / 2);
        fresh_ = false;
        const char* why = nullptr;
        ProximalStep<T> step({this->rows_, p_.rows, this->group_, this->lo_, this->hi_, this->linear_,
                              this->target_, p_.equality, x_, this->w_, this->f_, b_},
                             taken, this->longest_);
        const std::vector<double> before = x_;
        const double b[2] = {b_[0], b_[1]};
        const bool solved = step.solve(0.1 * std::max(0.1 * kkt_, std::ldexp(tol_, -idle)), [&] {
            moves_ += step.moves, numbers_ += step.numbers;
            step.moves = step.numbers = 0;
            return (why = reason_to_stop()) != nullptr;
        });
        const double old = objective_;
        if (solved) this->look();
        // A step that is solved leads down; a stronger term makes an easier problem.
        if (!solved || objective_ > old + kSame * std::abs(old)) {
            fresh_ = false;
            x_ = before;
            std::copy(b, b + 2, b_);
            prox_ *= kLess;
            limit_ = std::min(limit_, prox_);
            retry_ = true;
        }
        ++sweeps_;
        return why;
    }

    // ---- stopping --------------------------------------------------------------------------------------

    bool good_enough() {
        if (o_.gap_tol >= 0 && this->gap_ <= o_.gap_tol * std::abs(objective_)) return true;
        if (!(kkt_ <= tol_)) return false;
        if (this->near_optimum()) return true;
        tol_ = 0.1 * kkt_;
        return false;
    }

    // Remembers the iterate if its objective is lower than ever, or the same and its violation smaller.  What
    // is stopped on its way may be worse than what there was before.  Whether the objective is lower.
    bool keep_best() {
        const double rounding = kSame * std::abs(objective_);
        const bool lower = objective_ < best_ - rounding;
        if (lower || (objective_ <= best_ + rounding && kkt_ < best_kkt_)) {
            best_ = std::min(best_, objective_);
            best_kkt_ = kkt_;
            best_x_ = x_;
        }
        return lower;
    }
    void return_to_best() {
        keep_best();
        x_ = best_x_;
        nonfinite_ = false;
        fresh_ = true;
        this->look();
    }

    // A reason to stop that has nothing to do with optimality, or null.  Polls every 50 ms,
    // reports every 200 ms.
    const char* reason_to_stop() {
        if (nonfinite_) return "nonfinite";
        if (moves_ >= most_) return "max_iter";
        if (o_.max_numbers >= 0 && numbers_ >= o_.max_numbers) return "slow";
        const double now = seconds_since(start_);
        if (o_.max_seconds >= 0 && now >= o_.max_seconds) return "max_seconds";
        if (o_.poll && now >= next_poll_) {
            next_poll_ = now + 0.05;
            if (o_.poll()) return "interrupted";
        }
        if (o_.report && now >= next_report_) {
            next_report_ = now + 0.2;
            if (o_.report(moves_, kkt_, objective_)) return "stopped";
        }
        return nullptr;
    }

    const AscentOptions& o_;
    Clock::time_point start_;
    double tol_;  // the violation asked for: that of the caller, or less where the gap needs it
    const int64_t most_;
    std::vector<int64_t> active_;
    std::vector<Variable> variables_;  // as the sweeps have them
    int64_t enough_ = 0, moves_ = 0, sweeps_ = 0;
    double prox_ = 0, limit_ = kInf, best_ = kInf, best_kkt_ = kInf, next_poll_ = 0.05, next_report_ = 0.2;
    std::vector<double> best_x_;
    bool retry_ = false;  // the last step led nowhere, and a shorter one will be tried
    Shuffler shuffler_;
};

}  // namespace

template <class T>
std::vector<QpResult> ascend(const QpProblems& problems, const AscentOptions& o, const FeatureRows<T>& rows) {
    for (const QpProblem& p : problems) {
        check_qp(p, rows.n);
        for (int64_t i = 0; i < p.variables; ++i)
            if (!std::isfinite(p.C[i])) throw std::invalid_argument("coordinate ascent needs a finite C");
    }
    const auto start = Clock::now();
    std::vector<QpResult> out(problems.size());
    std::atomic<bool> stop{false};
    const Poll ask = [&] {
        if (o.poll && o.poll()) stop = true;
        return stop.load();
    };
    const Poll listen = [&] { return stop.load(); };
    const int workers = o.report ? 1 : std::min<int>(o.threads, int(problems.size()));
    Crew crew(workers, ask);
    try {
        crew.run(int64_t(problems.size()), [&](int worker, auto& take) {
            for (int64_t t; (t = take()) >= 0;) {
                AscentOptions task = o;
                task.poll = worker == 0 ? ask : listen;
                if (o.max_seconds >= 0)
                    task.max_seconds = std::max(0.0, o.max_seconds - seconds_since(start));
                const bool skip = stop;  // what is left keeps its start
                if (skip) task.max_iter = 0, task.poll = nullptr;
                QpResult& r = out[size_t(t)];
                r = Ascent<T>(problems[size_t(t)], task, rows).solve();
                if (skip) r.status = "interrupted";
                const std::string status = r.status;
                if (status == "interrupted" || status == "stopped") stop = true;
            }
        });
    } catch (const Interrupted&) {
        // Every problem has its answer: the workers end only when none is left.
    }
    return out;
}
template std::vector<QpResult> ascend(const QpProblems&, const AscentOptions&, const FeatureRows<double>&);
template std::vector<QpResult> ascend(const QpProblems&, const AscentOptions&, const FeatureRows<float>&);

}  // namespace mercer
