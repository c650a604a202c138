// Lanczos with full reorthogonalisation, on the upper half of a matrix.
#include "lanczos.hpp"

#include <cmath>

namespace mercer {
namespace {

// Rows and columns of a tile: its part of the vector and of the sum stay in the nearest cache.
constexpr int64_t kRows = 64, kColumns = 512;
// Rows of a matrix that is read in stripes, and their number.
constexpr int64_t kLarge = 1024, kStripes = 16;
// What is left of a vector is orthogonal to others if taking them out has shortened it by no more than this.
constexpr double kShortened = 0.7;
constexpr int kPasses = 4;
// Of the longest product: what is shorter than this is rounding.
constexpr double kRounding = 1e-14;

// Takes the mean from a vector.
void centre(double* x, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i];
    const double mean = sum / double(n);
    for (int64_t i = 0; i < n; ++i) x[i] -= mean;
}

class Products {
  public:
    Products(const SymmetricMatrix& matrix, int threads, const Poll& poll)
        : matrix_(matrix), threads_(threads), poll_(poll), x_(size_t(matrix.n)) {
        const int64_t n = matrix.n, stripes = n < kLarge ? 1 : kStripes;
        // Stripe s ends where s + 1 parts of the upper half do.
        for (int64_t s = 0; s < stripes; ++s) {
            const double rest = std::sqrt(1 - double(s + 1) / double(stripes));
            const int64_t end = int64_t(double(n) * (1 - rest)) / kRows * kRows;
            ends_.push_back(s + 1 < stripes ? end : n);
        }
        sums_.resize(size_t(stripes * n));
    }

    // y = A q.
    void operator()(const double* q, double* y) {
        const int64_t n = matrix_.n, stripes = int64_t(ends_.size());
        std::copy(q, q + n, x_.begin());
        if (matrix_.centred) centre(x_.data(), n);
        Crew crew(stripes > 1 ? threads_ : 1, poll_);
        crew.run(stripes, [&](int worker, auto& take) {
            for (int64_t s; (s = take()) >= 0;) {
                multiply(s == 0 ? 0 : ends_[size_t(s - 1)], ends_[size_t(s)], sums_.data() + s * n);
                crew.checkpoint(worker);
            }
        });
        std::copy(sums_.begin(), sums_.begin() + n, y);
        for (int64_t s = 1; s < stripes; ++s)
            for (int64_t i = ends_[size_t(s - 1)]; i < n; ++i) y[i] += sums_[size_t(s * n + i)];
        if (matrix_.centred) centre(y, n);
    }

  private:
    // What rows begin .. end of the upper half, and their mirror image, give.
    void multiply(int64_t begin, int64_t end, double* y) const {
        const Kernels<double>& isa = kernels<double>();
        const int64_t n = matrix_.n;
        const double* x = x_.data();
        std::fill(y + begin, y + n, 0.0);
        for (int64_t i = begin; i < end; i += kRows) {
            const int64_t rows = std::min(kRows, end - i);
            const double* K = matrix_.K + i * n;
            isa.matvec(K + i, rows, rows, n, x + i, y + i, nullptr, nullptr);
            for (int64_t j = i + rows; j < n; j += kColumns)
                isa.matvec(K + j, rows, std::min(kColumns, n - j), n, x + j, y + i, x + i, y + j);
        }
    }

    const SymmetricMatrix& matrix_;
    int threads_;
    const Poll& poll_;
    std::vector<int64_t> ends_;
    std::vector<double> x_, sums_;
};

double length(const double* w, int64_t n) {
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += w[i] * w[i];
    return std::sqrt(sum);
}

// Takes from w what it holds of `count` orthonormal rows; `held` is that, added to what is there.
void take_out(const double* rows, int64_t count, int64_t n, double* w, double* held,
              std::vector<double>& room) {
    const Kernels<double>& isa = kernels<double>();
    room.assign(size_t(3 * count), 0.0);
    double *parts = room.data(), *less = parts + count, *unused = less + count;
    for (int64_t j = 0; j < n; j += kColumns)
        isa.matvec(rows + j, count, std::min(kColumns, n - j), n, w + j, parts, nullptr, nullptr);
    for (int64_t i = 0; i < count; ++i) {
        held[i] += parts[i];
        less[i] = -parts[i];
    }
    for (int64_t j = 0; j < n; j += kColumns)
        isa.matvec(rows + j, count, std::min(kColumns, n - j), n, w + j, unused, less, w + j);
}

}  // namespace

int64_t lanczos(const SymmetricMatrix& matrix, const LanczosBasis& basis, int64_t from, int64_t to,
                int threads, const Poll& poll) {
    const int64_t n = matrix.n, most = basis.most;
    Team team;
    Products products(matrix, threads, poll);
    std::vector<double> w(static_cast<size_t>(n)), held(static_cast<size_t>(most)), room;
    double longest = 0;
    for (int64_t j = 0; j < from; ++j) longest = std::max(longest, std::abs(basis.T[j * most + j]));
    for (int64_t j = from; j < to; ++j) {
        products(basis.Q + j * n, w.data());
        double before = length(w.data(), n);
        longest = std::max(longest, before);
        std::fill(held.begin(), held.end(), 0.0);
        // All that it holds, but for rounding, is of the last two.
        const int64_t last = std::max<int64_t>(j - 1, 0);
        take_out(basis.Q + last * n, j + 1 - last, n, w.data(), held.data() + last, room);
        double left = length(w.data(), n);
        for (int pass = 0; pass < kPasses && left > 0; ++pass) {
            before = left;
            take_out(basis.Q, j + 1, n, w.data(), held.data(), room);
            left = length(w.data(), n);
            if (left > kShortened * before) break;
        }
        for (int64_t i = 0; i <= j; ++i) basis.T[i * most + j] = basis.T[j * most + i] = held[size_t(i)];
        const bool whole = left <= kRounding * longest;
        basis.rest[j] = whole ? 0.0 : left;
        if (whole) return j + 1;
        if (j + 1 == most) continue;
        for (int64_t i = 0; i < n; ++i) basis.Q[(j + 1) * n + i] = w[size_t(i)] / left;
    }
    return to;
}

}  // namespace mercer
