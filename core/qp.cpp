// The outer loop of the working-set solver; qp.hpp states the problem, qp_kernels.hpp the inner one.
#include "qp.hpp"

#include <cmath>
#include <limits>

#include "qp_cache.hpp"

namespace mercer {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int64_t kWorkingSet = 1024;
constexpr double kHead = 0.3;      // share of the new variables that are the very worst; the others are spread
constexpr double kDepth = 0.1;     // an inner problem ends when its violation is this part of the outer one
constexpr int64_t kDirect = 1024;  // up to this many variables the working set is everything

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

template <class T> class Solver {
  public:
    Solver(const QpProblem& p, const QpOptions& o, RowSource<T>& s)
        : p_(p), o_(o), s_(s), n_(s.n), N_(p.variables), cache_(s.n, o.cache_bytes), start_(Clock::now()) {
        const size_t N = size_t(N_), n = size_t(n_);
        x_.resize(N), lo_.resize(N), hi_.resize(N), lin_.resize(N), v_.resize(N), resting_.assign(N, 0), mark_.assign(N, 0);
        for (size_t i = 0; i < N; ++i) {
            const double sign = p.signs[i];
            x_[i] = sign * p.alpha[i];
            lo_[i] = sign > 0 ? 0 : -p.C[i];
            hi_[i] = sign > 0 ? p.C[i] : 0;
            lin_[i] = sign * p.p[i];
            scale_ = std::max(scale_, std::abs(p.p[i]));
            endless_ |= p.C[i] == kInf;
        }
        for (double d : s.diag) top_diag_ = std::max(top_diag_, std::abs(d));
        beta_.assign(n, 0.0), beta_known_ = f_known_ = f_ = beta_;
        most_ = o.max_iter >= 0 ? o.max_iter : std::max<int64_t>(100'000'000, 1000 * N_);
    }

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
        if (std::string(status) == "floor" && kkt_ <= o_.tol) out.status = "converged";
        out.kkt = kkt_, out.worst = worst_, out.gap = gap();
        out.objective = value_of_objective();
        out.iterations = steps_, out.outer = outer_, out.kernel_rows = rows_;
        out.f = f_;
        for (int64_t i = 0; i < N_; ++i) p_.alpha[i] = std::abs(x_[size_t(i)]);
        out.seconds = seconds();
        return out;
    }

  private:
    // ---- f, exactly ------------------------------------------------------------------------------------

    void beta_now() {
        std::fill(beta_.begin(), beta_.end(), 0.0);
        for (int64_t i = 0; i < N_; ++i) beta_[size_t(p_.rows[i])] += x_[size_t(i)];
    }
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
        fresh_ = true;
        everything_active();
    }
    // The working copy of f, as far as it is known, back into f_.
    void f_full() {
        for (size_t c = 0; c < columns_.size() && c < near_.size(); ++c) f_[size_t(columns_[c])] = near_[c];
    }
    double value_of_objective() const {
        double total = 0;
        for (int64_t r = 0; r < n_; ++r) total += 0.5 * beta_[size_t(r)] * f_[size_t(r)];
        for (int64_t i = 0; i < N_; ++i) total += lin_[size_t(i)] * x_[size_t(i)];
        return total;
    }

    // ---- the active set --------------------------------------------------------------------------------

    void everything_active() {
        if (int64_t(active_.size()) != N_) {
            active_.resize(size_t(N_));
            for (int64_t i = 0; i < N_; ++i) active_[size_t(i)] = i;
            columns_changed_ = true;
        }
        if (int64_t(columns_.size()) != n_) {
            columns_.resize(size_t(n_));
            place_.resize(size_t(n_));
            for (int64_t r = 0; r < n_; ++r) columns_[size_t(r)] = place_[size_t(r)] = r;
            columns_changed_ = true;
        }
        near_ = f_;
    }
    int group(int64_t i) const { return p_.equality == 2 && p_.signs[i] < 0; }

    // v of the active variables, the extremes, the violation.
    void scan() {
        for (int g = 0; g < 2; ++g) top_[g] = -kInf, bottom_[g] = kInf, at_top_[g] = at_bottom_[g] = -1;
        for (int64_t i : active_) {
            const double v = -(near_[size_t(place_[size_t(p_.rows[i])])] + lin_[size_t(i)]);
            v_[size_t(i)] = v;
            const int g = group(i);
            if (x_[size_t(i)] < hi_[size_t(i)] && v > top_[g]) top_[g] = v, at_top_[g] = i;
            if (x_[size_t(i)] > lo_[size_t(i)] && v < bottom_[g]) bottom_[g] = v, at_bottom_[g] = i;
            if (!(v - v == 0)) broken_ = true;
        }
        kkt_ = 0, worst_ = -1;
        for (int g = 0; g < 2; ++g) {
            double here = top_[g] - bottom_[g];
            if (p_.equality == 0) here = std::max(top_[g], -bottom_[g]);
            if (here > kkt_) kkt_ = here, worst_ = p_.equality == 0 && !(top_[g] >= -bottom_[g]) ? at_bottom_[g] : at_top_[g];
        }
    }
    // sum (x - lo) max(0, b - v) + (hi - x) max(0, v - b): the duality gap for the multiplier b, the best of a few.
    double gap() const {
        double total = 0;
        for (int g = 0; g < (p_.equality == 2 ? 2 : 1); ++g) {
            double best = kInf;
            const double middle = 0.5 * (top_[g] + bottom_[g]);
            for (double b : {middle, top_[g], bottom_[g]}) {
                if (p_.equality == 0) b = 0;
                if (!(b - b == 0)) continue;
                double sum = 0;
                for (int64_t i : active_) {
                    if (group(i) != g) continue;
                    const size_t k = size_t(i);
                    if (v_[k] < b && x_[k] > lo_[k]) sum += (x_[k] - lo_[k]) * (b - v_[k]);
                    if (v_[k] > b && x_[k] < hi_[k]) sum += (hi_[k] - x_[k]) * (v_[k] - b);
                }
                best = std::min(best, sum);
            }
            total += best < kInf ? best : 0;
        }
        return total;
    }
    bool good_enough(double tol) const {
        if (kkt_ <= tol) return true;
        return o_.gap_tol >= 0 && gap() <= o_.gap_tol * std::abs(objective_);
    }
    // Variables at a bound that no violating pair could move, twice in a row, rest until the end.
    void shrink() {
        std::vector<int64_t> stay;
        for (int64_t i : active_) {
            const size_t k = size_t(i);
            const int g = group(i);
            const double low = p_.equality == 0 ? 0 : bottom_[g], high = p_.equality == 0 ? 0 : top_[g];
            const bool rests = (x_[k] <= lo_[k] && v_[k] < low) || (x_[k] >= hi_[k] && v_[k] > high);
            resting_[k] = rests ? char(std::min(resting_[k] + 1, 100)) : 0;
            if (resting_[k] < kPatience) stay.push_back(i);
        }
        if (double(stay.size()) > 0.9 * double(active_.size())) return;
        std::vector<char> wanted(size_t(n_), 0);
        for (int64_t i : stay) wanted[size_t(p_.rows[i])] = 1;
        std::vector<int64_t> positions, columns;
        for (size_t c = 0; c < columns_.size(); ++c)
            if (wanted[size_t(columns_[c])]) positions.push_back(int64_t(c)), columns.push_back(columns_[c]);
        active_ = std::move(stay);
        if (columns.size() == columns_.size()) return;
        f_full();
        cache_.narrow(positions);
        columns_ = std::move(columns);
        near_.resize(columns_.size());
        std::fill(place_.begin(), place_.end(), -1);
        for (size_t c = 0; c < columns_.size(); ++c) {
            place_[size_t(columns_[c])] = int64_t(c);
            near_[c] = f_[size_t(columns_[c])];
        }
        s_.focus(columns_);
        fresh_ = false;
    }

    // ---- the working set -------------------------------------------------------------------------------

    // The free variables of the last set (up to half), the worst violators of both sides in turn, and others spread
    // evenly over the violators of the outer half: the worst alone tend to be neighbours that say the same thing.
    std::vector<int64_t> choose(int64_t q) {
        ++stamp_;
        std::vector<int64_t> set;
        auto add = [&](int64_t i) {
            if (mark_[size_t(i)] == stamp_ || int64_t(set.size()) >= q) return;
            mark_[size_t(i)] = stamp_;
            set.push_back(i);
        };
        std::vector<std::pair<double, int64_t>> side[2];
        for (int64_t i : active_) {
            const size_t k = size_t(i);
            const int g = group(i);
            const double low = p_.equality == 0 ? 0 : bottom_[g], high = p_.equality == 0 ? 0 : top_[g];
            if (x_[k] < hi_[k] && v_[k] > low) side[0].emplace_back(low - v_[k], i);
            if (x_[k] > lo_[k] && v_[k] < high) side[1].emplace_back(v_[k] - high, i);
        }
        const size_t room = size_t(q) / 2, head = std::max<size_t>(1, size_t(kHead * double(room)));
        for (auto& s : side) {
            const double floor = -0.5 * kkt_;
            if (s.size() > size_t(q))
                s.erase(std::remove_if(s.begin(), s.end(), [&](auto& e) { return e.first > floor; }), s.end());
            const size_t want = std::min(s.size(), head);
            std::nth_element(s.begin(), s.begin() + int64_t(want), s.end());
            std::sort(s.begin(), s.begin() + int64_t(want));
            if (!s.empty()) add(s[0].second);
        }
        const int64_t keep = q / 2;
        for (size_t k = last_.size(); k-- > 0 && int64_t(set.size()) < keep;) {
            const int64_t i = last_[k];
            const size_t j = size_t(i);
            if (place_[size_t(p_.rows[i])] >= 0 && x_[j] > lo_[j] && x_[j] < hi_[j]) add(i);
        }
        std::reverse(set.begin(), set.end());
        for (size_t k = 0; k < head; ++k)
            for (auto& s : side)
                if (k < s.size()) add(s[k].second);
        const size_t left = size_t(q - int64_t(set.size()) + 1) / 2;
        for (size_t k = 0; k < left; ++k)
            for (auto& s : side)
                if (s.size() > head) {
                    const size_t tail = s.size() - head, stride = std::max<size_t>(1, tail / left);
                    add(s[head + k * stride % tail].second);
                }
        return set;
    }

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
    // The block K[W, W] of the variables from that of their rows; the same thing if they are one to one.
    void spread(const T* square, int64_t rows) {
        const int64_t q = desk_.size();
        std::vector<int64_t> at(size_t(q), -1);
        bool plain = q == rows;
        for (int64_t k = 0; k < q; ++k) {
            if (desk_.variable[size_t(k)] >= 0) at[size_t(k)] = index_[size_t(p_.rows[desk_.variable[size_t(k)]])];
            plain &= at[size_t(k)] == k;
        }
        if (plain) return desk_.take(square);
        if (q * q > block_size_) block_.reset(block_size_ = q * q);
        for (int64_t k = 0; k < q; ++k) {
            T* to = block_.get() + k * q;
            const T* from = square + at[size_t(k)] * rows;
            for (int64_t l = 0; l < q; ++l) to[l] = at[size_t(k)] < 0 || at[size_t(l)] < 0 ? T(0) : from[at[size_t(l)]];
        }
        desk_.take(block_.get());
    }
    // The different rows of some variables; index_[r] is the number of row r among them.
    std::vector<int64_t> rows_of(const std::vector<int64_t>& set) {
        std::vector<int64_t> rows;
        ++row_stamp_;
        seen_.resize(size_t(n_), 0), index_.resize(size_t(n_), 0);
        for (int64_t i : set) {
            const size_t r = size_t(p_.rows[i]);
            if (seen_[r] != row_stamp_) seen_[r] = row_stamp_, index_[r] = int64_t(rows.size()), rows.push_back(int64_t(r));
        }
        return rows;
    }
    struct Found {
        int64_t steps;
        double violation;
        bool unbounded, stuck;
    };
    template <class R> Found run(void (*solve)(Inner<T, R>&), const R* diag, R* v, R* rise, R* fall, double target, int64_t most) {
        Inner<T, R> p{p_.equality, desk_.size(), desk_.split, desk_.rows.data(), diag, v, rise, fall, desk_.value.data(),
                      desk_.lo.data(), desk_.hi.data(), kQpTau * (top_diag_ > 0 ? top_diag_ : 1.0), target, std::min(most, most_ - steps_), 0, 0, 0, false, false};
        solve(p);
        steps_ += p.steps;
        objective_ -= p.decrease;
        if (p.steps > 0) fresh_ = false;
        return {p.steps, p.violation, p.unbounded, p.stuck};
    }
    // Solves the inner problem; in float32 where the target is far above its rounding.
    Found inner(double target, int64_t most) {
        const double middle = p_.equality == 1 ? 0.5 * (top_[0] + bottom_[0]) : 0;
        double size = 0;
        for (double& v : desk_.v) v -= middle, size = std::max(size, std::abs(v));
        Found found;
        if (size <= kFloat32 * target && top_diag_ < 1e15) {
            const std::vector<double>* from[] = {&desk_.diag, &desk_.v, &desk_.rise, &desk_.fall};
            for (int k = 0; k < 4; ++k) desk_.fast[k].assign(from[k]->begin(), from[k]->end());
            auto& a = desk_.fast;
            found = run<float>(qp_kernels<T>().fast, a[0].data(), a[1].data(), a[2].data(), a[3].data(), target, most);
        } else {
            found = run<double>(qp_kernels<T>().inner, desk_.diag.data(), desk_.v.data(), desk_.rise.data(),
                                desk_.fall.data(), target, most);
        }
        for (int64_t k = 0; k < desk_.size(); ++k)
            if (desk_.variable[size_t(k)] >= 0) x_[size_t(desk_.variable[size_t(k)])] = desk_.value[size_t(k)];
        return found;
    }

    // ---- stopping --------------------------------------------------------------------------------------

    double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }

    // A reason to stop that has nothing to do with optimality, or null.  Polls every 50 ms, reports every 200 ms.
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
    // No float64 evaluation of f can tell a smaller violation from rounding.
    double rounding() const {
        double size = 0;
        for (double b : x_) size += std::abs(b);
        return 4 * std::numeric_limits<double>::epsilon() * (top_diag_ * size + scale_);
    }
    // With C = inf: the best multiple of the whole of x, and whether the problem has no bottom.  Along x the objective
    // is t L + t^2 q / 2, so its bottom is at most -L^2 / 2q, however long x is.
    bool stretch() {
        double linear = 0, quad = 0, most = kInf, sums[2] = {0, 0}, size = 0;
        for (int64_t i = 0; i < N_; ++i) {
            const size_t k = size_t(i);
            const int64_t c = place_[size_t(p_.rows[i])];
            if (x_[k] == 0) continue;
            linear += lin_[k] * x_[k];
            if (c >= 0) quad += x_[k] * near_[size_t(c)];
            else return false;
            most = std::min(most, p_.C[i] / std::abs(x_[k]));
            sums[group(i)] += x_[k];
            size += std::abs(x_[k]);
        }
        if (!(linear < 0)) return false;
        if (p_.equality && std::max(std::abs(sums[0]), std::abs(sums[1])) > 1e-9 * size) return false;
        const bool endless = linear * linear * top_diag_ > 1e14 * quad * scale_ * scale_;
        if (most == kInf && (endless || top_diag_ * size > 1e14 * scale_)) return true;
        const double t = std::min(most, quad > 0 ? -linear / quad : 1.0);
        if (!(t > 1.5)) return false;
        for (auto* a : {&x_, &near_, &f_, &f_known_, &beta_known_})
            for (double& value : *a) value *= t;
        for (int64_t i = 0; i < N_; ++i) x_[size_t(i)] = std::clamp(x_[size_t(i)], lo_[size_t(i)], hi_[size_t(i)]);
        objective_ += linear * (t - 1) + 0.5 * quad * (t * t - 1);
        fresh_ = false;
        return false;
    }

    // ---- the two loops ---------------------------------------------------------------------------------

    // Few variables: all of them are the working set.
    const char* direct() {
        double before = kInf;
        for (;;) {
            scan();
            if (good_enough(o_.tol)) return "converged";
            if (const char* why = outside()) return why;
            if (kkt_ <= rounding()) return "floor";
            if (!(kkt_ < 0.5 * before)) {
                coarse = !s_.exact;
                return "floor";
            }
            before = kkt_;
            lay(active_);
            fill();
            spread(square_.get(), square_rows_);
            for (;;) {
                const double goal = o_.gap_tol >= 0 ? std::max(o_.tol, 0.1 * kkt_) : o_.tol;
                const Found found = inner(goal, endless_ ? 2000 : 20000);
                kkt_ = found.violation;
                if (found.unbounded) return "unbounded";
                if (const char* why = outside()) return why;
                if (found.stuck || !(found.violation > goal)) break;
                if (endless_) break;
            }
            refresh();
            if (endless_) {
                if (stretch()) return "unbounded";
                scan();
                before = kInf;
            }
        }
    }
    void fill() {
        if (filled_) return;
        const std::vector<int64_t> rows = rows_of(active_);
        square_.reset(int64_t(rows.size() * rows.size()));
        s_.square(rows, square_.get(), o_.threads, o_.poll);
        square_rows_ = int64_t(rows.size());
        filled_ = true;
    }

    // Many variables: working sets, shrinking, and an exact look at everything before the end.
    const char* large() {
        int64_t q = std::min({kWorkingSet, N_, std::max<int64_t>(2, cache_.affordable(n_))});
        columns_changed_ = true;
        const double rehearsal = s_.exact ? o_.tol : 0.9 * o_.tol;
        double best = kInf, last_exact = kInf;
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
            if (good_enough(fresh_ ? o_.tol : rehearsal) || (bottom && !fresh_)) {
                if (fresh_) return "converged";
                refresh();
                scan();
                if (good_enough(o_.tol)) return "converged";
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
            if (kkt_ < 0.9 * best) best = kkt_, since_best = 0;
            else if (++since_best > 200 && kkt_ < 1e4 * rounding()) { stalled_ = true; continue; }
            if (endless_ && stretch()) return "unbounded";
            if (++since_shrink % kShrinkEvery == 0) shrink();
            if (columns_changed_) continue;
            const Step step = sweep(q);
            if (step == kUnbounded) return "unbounded";
            stalled_ = step == kStuck;
        }
    }

    enum Step { kMoved, kStuck, kUnbounded };

    // One working set: K[W, W], the inner problem, then the rows of the variables that moved bring f up to date.
    Step sweep(int64_t q) {
        const std::vector<int64_t> set = choose(q);
        const std::vector<int64_t> rows = rows_of(set);
        if (int64_t(rows.size() * rows.size()) > square_size_) square_.reset(square_size_ = int64_t(rows.size() * rows.size()));
        s_.square(rows, square_.get(), o_.threads, o_.poll);
        lay(set);
        spread(square_.get(), int64_t(rows.size()));
        std::vector<double> d(rows.size(), 0.0), before;
        for (int64_t i : set) before.push_back(x_[size_t(i)]);
        const Found found = inner(std::max(kDepth * kkt_, 0.5 * o_.tol), 50 * q);
        for (size_t k = 0; k < set.size(); ++k) d[size_t(index_[size_t(p_.rows[set[k]])])] += x_[size_t(set[k])] - before[k];
        last_ = set;
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
                qp_kernels<T>().accumulate(pointers.data(), d.data(), count, t * chunk, std::min(width, (t + 1) * chunk),
                                           near_.data());
        });
        if (found.unbounded) return kUnbounded;
        return moved.empty() ? kStuck : kMoved;
    }

    static constexpr int kPatience = 2;
    static constexpr double kFloat32 = 1e4;  // float32 tells 1e-7 of v; steps add up some of it
    static constexpr int64_t kShrinkEvery = 4;
    inline static const Poll kNoPoll{};

    const QpProblem& p_;
    const QpOptions& o_;
    RowSource<T>& s_;
    int64_t n_, N_;
    RowCache<T> cache_;
    Clock::time_point start_;
    double next_poll_ = 0.05, next_report_ = 0.2, scale_ = 0, top_diag_ = 0, objective_ = 0;
    bool endless_ = false, broken_ = false, fresh_ = false, stalled_ = false, filled_ = false, columns_changed_ = true;
    int64_t steps_ = 0, most_ = 0, outer_ = 0, rows_ = 0, stamp_ = 0, row_stamp_ = 0;

    std::vector<double> x_, lo_, hi_, lin_, v_;               // per variable
    std::vector<char> resting_;
    std::vector<int64_t> mark_;
    std::vector<double> beta_, beta_known_, f_, f_known_;     // per row; f_known_ = K beta_known_ in float64
    std::vector<int64_t> active_, columns_, place_;           // variables; rows; row -> position among columns or -1
    std::vector<double> near_;                                // f over columns_: the working copy
    std::vector<int64_t> last_, seen_, index_;
    Bench<T> desk_;
    Buffer<T> square_, block_;
    int64_t square_size_ = 0, block_size_ = 0, square_rows_ = 0;
    double top_[2], bottom_[2], kkt_ = 0;
    int64_t at_top_[2], at_bottom_[2], worst_ = -1;
};

}  // namespace

void check_qp(const QpProblem& p, int64_t n) {
    auto at = [](const char* name, int64_t i) { return std::string(name) + "[" + std::to_string(i) + "]"; };
    if (p.equality < 0 || p.equality > 2) bad("equality must be 0, 1 or 2; got " + std::to_string(p.equality));
    for (int64_t i = 0; i < p.variables; ++i) {
        if (p.rows[i] < 0 || p.rows[i] >= n)
            bad(at("rows", i) + " is " + std::to_string(p.rows[i]) + "; K has " + std::to_string(n) + " rows");
        if (p.signs[i] != 1 && p.signs[i] != -1) bad(at("signs", i) + " must be -1 or 1");
        if (!std::isfinite(p.p[i])) bad(at("p", i) + " is not finite");
        if (!(p.C[i] >= 0)) bad(at("C", i) + " must be at least 0 (infinity is allowed)");
        if (!std::isfinite(p.alpha[i]) || p.alpha[i] < 0 || p.alpha[i] > p.C[i])
            bad(at("alpha", i) + " is " + std::to_string(p.alpha[i]) + "; it must lie between 0 and C = " + std::to_string(p.C[i]));
    }
}

namespace {

// float32 rows first; where they turn out too coarse or overflow, float64 rows from where the first run ended.
//   make(T()) gives the source of rows in precision T
template <class Make> QpResult solve(const QpProblem& p, const QpOptions& o, const Make& make) {
    const std::vector<double> start(p.alpha, p.alpha + p.variables);
    QpResult first;
    {
        auto source = make(float());
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
    QpResult second = Solver<double>(p, rest, *source).solve();
    second.iterations += first.iterations;
    second.outer += first.outer;
    second.kernel_rows += first.kernel_rows;
    second.seconds += first.seconds;
    return second;
}

}  // namespace

template <class S> QpResult solve_qp_dense(const QpProblem& p, const QpOptions& o, const S* K, int64_t n) {
    check_qp(p, n);
    return solve(p, o, [&]<class T>(T) { return dense_rows<T, S>(K, n); });
}
template <class S>
QpResult solve_qp_tiles(const QpProblem& p, const QpOptions& o, const Program& program, const Inputs<S>& data) {
    check_qp(p, data.n);
    if (!data.same) bad("the solver needs the same observations on both sides: pass None as the second part of views and rows");
    return solve(p, o, [&]<class T>(T) { return tile_rows<T, S>(program, data, o.threads, o.poll); });
}
template QpResult solve_qp_dense(const QpProblem&, const QpOptions&, const double*, int64_t);
template QpResult solve_qp_dense(const QpProblem&, const QpOptions&, const float*, int64_t);
template QpResult solve_qp_tiles(const QpProblem&, const QpOptions&, const Program&, const Inputs<double>&);
template QpResult solve_qp_tiles(const QpProblem&, const QpOptions&, const Program&, const Inputs<float>&);

}  // namespace mercer
