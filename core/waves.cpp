// Random Fourier features: a cosine and a sine of the projection of each row on each frequency.
#include "prepare.hpp"

namespace mercer {
namespace {

// Values of the projections that one worker holds at a time, so that they stay in the second-level cache;
// rows among them at most, and at least (those that the matrix product holds in registers).
constexpr int64_t kHeld = 65536, kMostRows = 96, kLeastRows = 12;

}  // namespace

// out[i] = (w_1 cos t_i1, ..., w_m cos t_im, w_1 sin t_i1, ..., w_m sin t_im), n rows of 2m.
// t_ij = x_i . f_j or, without frequencies, the d = m numbers of row x_i itself.
//   cost    n m d multiply-adds and n m pairs of cosine and sine, about 2 ns each
//   memory  a copy of the frequencies and 12 m numbers (512 KiB where m is small) per thread
//   order   every entry stands alone: the result does not depend on `threads`
// Requires x of n*d, frequencies of m*d, weight of m; no aliasing.
template <class T>
void waves(const T* x, int64_t n, int64_t d, const T* frequencies, const T* weight, int64_t m, T* out,
           int threads, const Poll& poll) {
    const Kernels<T>& isa = kernels<T>();
    const int64_t P = isa.panel, wide = round_up(std::max<int64_t>(m, 1), P);
    const int64_t rows = std::clamp(kHeld / wide, kLeastRows, kMostRows), tasks = (n + rows - 1) / rows;
    const bool past = past_caches<T>(2 * n * m);
    Buffer<T> panels(frequencies ? wide * d : 0);
    if (frequencies && m > 0) isa.pack(frequencies, m, d, d, 1, panels.get());
    Crew crew(n * m < 4 * kHeld ? 1 : threads, poll);
    crew.run(m > 0 ? tasks : 0, [&](int worker, auto& take) {
        Buffer<T> held(frequencies ? rows * wide : 0);
        for (int64_t t; (t = take()) >= 0;) {
            const int64_t i0 = t * rows, here = std::min(rows, n - i0);
            const T* phases = x + i0 * d;
            if (frequencies) {
                isa.multiply(x + i0 * d, d, 1, here, d, panels.get(), P * d, wide / P, held.get(), wide,
                             false);
                phases = held.get();
            }
            const int64_t stride = frequencies ? wide : d;
            for (int64_t i = 0; i < here; ++i) {
                T* row = out + 2 * (i0 + i) * m;
                isa.waves(phases + i * stride, weight, m, row, row + m, past);
            }
            crew.checkpoint(worker);
        }
        isa.drain();
    });
}

template void waves(const double*, int64_t, int64_t, const double*, const double*, int64_t, double*, int,
                    const Poll&);
template void waves(const float*, int64_t, int64_t, const float*, const float*, int64_t, float*, int,
                    const Poll&);

}  // namespace mercer
