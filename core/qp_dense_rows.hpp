// Rows of a K in memory, as the solver asks for them.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "prepare.hpp"
#include "qp.hpp"

namespace mercer {
namespace {

// Positions as runs of neighbours, which are copied and summed at the speed of memory.
struct ColumnRuns {
    struct Part {
        int64_t from, to, length;  // position in the long row, in the short one
    };
    std::vector<Part> parts;

    explicit ColumnRuns(const std::vector<int64_t>& positions = {}) {
        for (size_t k = 0; k < positions.size(); ++k) {
            if (!parts.empty() && positions[k] == parts.back().from + parts.back().length)
                ++parts.back().length;
            else parts.push_back({positions[k], int64_t(k), 1});
        }
    }
    template <class S, class T> void copy(const S* row, T* out) const {
        for (const Part p : parts) {
            const S* from = row + p.from;
            T* to = out + p.to;
            for (int64_t c = 0; c < p.length; ++c) to[c] = T(from[c]);
        }
    }
    // The same with a number for the row and one for each column subtracted.
    template <class S, class T>
    void copy(const S* row, T* out, double of_row, const double* of_columns) const {
        for (const Part p : parts)
            for (int64_t c = 0; c < p.length; ++c)
                out[p.to + c] = T(double(row[p.from + c]) - (of_row + of_columns[p.to + c]));
    }
    // No longer than `most`: pieces of work.
    std::vector<Part> cut(int64_t most) const {
        std::vector<Part> out;
        for (const Part& p : parts)
            for (int64_t c = 0; c < p.length; c += most)
                out.push_back({p.from + c, p.to + c, std::min(most, p.length - c)});
        return out;
    }
};

template <class T, class S> class DenseRows final : public RowSource<T> {
  public:
    DenseRows(const S* K, int64_t side, const std::vector<int64_t>& which)
        : K_(K), side_(side), which_(which), all_(which) {
        this->n = int64_t(which.size());
        this->exact = sizeof(T) >= sizeof(S);
        this->stored = this->cheap = true;
        for (int64_t r : which) this->diag.push_back(double(row(r)[r]));
        for (double d : this->diag) this->norm.push_back(std::sqrt(std::abs(d)));
    }
    // The origin is one of a few rows, if that makes all products much smaller; it costs these rows alone.
    void recentre() override {
        std::vector<double> best;
        double smallest = 0;
        for (double d : this->diag) smallest = std::max(smallest, kMuchSmaller * std::abs(d));
        for (int64_t k = 0; k < std::min<int64_t>(kOrigins, this->n); ++k) {
            const S* c = row(which_[size_t(k * this->n / kOrigins % this->n)]);
            std::vector<double> seen;
            double top = 0;
            for (int64_t i = 0; i < this->n; ++i) {
                seen.push_back(this->diag[size_t(i)] - 2 * shift(c, i, k));
                top = std::max(top, std::abs(seen.back()));
            }
            if (!(top < smallest)) continue;
            smallest = top;
            best = std::move(seen);
            shift_.clear();
            for (int64_t i = 0; i < this->n; ++i) shift_.push_back(shift(c, i, k));
        }
        if (!shift_.empty()) this->diag = std::move(best);
    }
    void focus(const std::vector<int64_t>& columns) override {
        std::vector<int64_t> at;
        for (int64_t c : columns) at.push_back(which_[size_t(c)]);
        columns_ = ColumnRuns(at);
        shift_in_focus_.clear();
        if (!shift_.empty())
            for (int64_t c : columns) shift_in_focus_.push_back(shift_[size_t(c)]);
    }
    void rows(const std::vector<int64_t>& which, T* const* out, int, const Poll&) override {
        for (size_t k = 0; k < which.size(); ++k) {
            const S* from = row(which_[size_t(which[k])]);
            if (shift_.empty()) columns_.copy(from, out[k]);
            else columns_.copy(from, out[k], shift_[size_t(which[k])], shift_in_focus_.data());
        }
    }
    void square(const std::vector<int64_t>& which, T* out, int, const Poll&) override {
        for (int64_t a : which)
            for (int64_t b : which) {
                const S value = row(which_[size_t(a)])[which_[size_t(b)]];
                *out++ =
                    shift_.empty() ? T(value) : T(double(value) - (shift_[size_t(a)] + shift_[size_t(b)]));
            }
    }
    void apply(const std::vector<int64_t>& which, const std::vector<double>& d, double* f, int threads,
               const Poll& poll) override {
        const auto pieces = all_.cut(2048);
        const int64_t count = int64_t(which.size());
        Crew crew(crew_size(threads, this->n * count), poll);
        crew.run(int64_t(pieces.size()), [&](int worker, auto& take) {
            std::vector<const S*> rows(which.size());
            for (int64_t t; (t = take()) >= 0;) {
                const auto& p = pieces[size_t(t)];
                for (size_t k = 0; k < which.size(); ++k) rows[k] = row(which_[size_t(which[k])]) + p.from;
                qp_kernels<S>().accumulate(rows.data(), d.data(), count, 0, p.length, f + p.to);
                crew.checkpoint(worker);
            }
        });
    }

  private:
    static constexpr int64_t kOrigins = 4;
    static constexpr double kMuchSmaller = 0.25;

    const S* row(int64_t r) const { return K_ + r * side_; }
    // With origin c: K_ij - shift_i - shift_j = k(i, j) - k(i, c) - k(c, j) + k(c, c).
    double shift(const S* c, int64_t i, int64_t k) const {
        return double(c[which_[size_t(i)]]) - 0.5 * this->diag[size_t(k * this->n / kOrigins % this->n)];
    }

    const S* K_;
    const int64_t side_;
    const std::vector<int64_t>& which_;
    ColumnRuns all_, columns_;
    std::vector<double> shift_, shift_in_focus_;  // of every row, of the columns in focus; empty: as given
};

}  // namespace
}  // namespace mercer
