// The solver's memory of rows: the least recently used give way, within a budget fixed at the start.
#pragma once
#include <algorithm>
#include <vector>

#include "prepare.hpp"
#include "qp.hpp"

namespace mercer {

// Invariants: slot_of[r] = s iff row_of[s] = r; a filled slot holds K[r, columns] for the columns in focus.
template <class T> class RowCache {
  public:
    RowCache(int64_t n, int64_t bytes) : n_(n), bytes_(bytes) {}

    // How many rows of `columns` entries so many bytes hold.
    static int64_t affordable(int64_t bytes, int64_t columns) {
        return std::max<int64_t>(1, bytes / (round_up(columns, kPad) * int64_t(sizeof(T))));
    }
    // Forgets everything; rows are `columns` long from now on.  At least `least` rows fit.
    void reset(int64_t columns, int64_t least) {
        stride_ = round_up(columns, kPad);
        capacity_ = std::min(n_, std::max(affordable(bytes_, columns), least));
        if (capacity_ * stride_ > allocated_) memory_.reset(allocated_ = capacity_ * stride_);
        slot_of_.assign(size_t(n_), -1);
        row_of_.assign(size_t(capacity_), -1);
        used_.assign(size_t(capacity_), 0);
    }
    // Keeps only the columns at these increasing positions, and only the rows that are among them
    // (place[r] >= 0): the others rest too.  More rows fit afterwards.
    void narrow(const std::vector<int64_t>& positions, const std::vector<int64_t>& place) {
        const int64_t count = int64_t(positions.size()), *at = positions.data();
        const int64_t stride = round_up(count, kPad);
        int64_t kept = 0;
        for (int64_t s = 0; s < capacity_; ++s) {
            const int64_t r = row_of_[size_t(s)];
            if (r < 0) continue;
            slot_of_[size_t(r)] = -1;
            if (place[size_t(r)] < 0) continue;
            const T* from = memory_.get() + s * stride_;
            T* to = memory_.get() + kept * stride;  // never ahead of `from`
            for (int64_t c = 0; c < count; ++c) to[c] = from[at[c]];
            row_of_[size_t(kept)] = r, used_[size_t(kept)] = used_[size_t(s)];
            slot_of_[size_t(r)] = kept++;
        }
        stride_ = stride;
        capacity_ = std::max(capacity_, std::min(n_, allocated_ / stride));
        row_of_.resize(size_t(kept)), used_.resize(size_t(kept));
        row_of_.resize(size_t(capacity_), -1);
        used_.resize(size_t(capacity_), 0);
    }
    // out[k] = row which[k] (all different, at most the capacity); missing ones are computed as one block.
    int64_t fetch(const std::vector<int64_t>& which, std::vector<const T*>& out, RowSource<T>& source,
                  int threads, const Poll& poll) {
        ++clock_;
        std::vector<int64_t> missing;
        for (int64_t r : which) {
            const int64_t s = slot_of_[size_t(r)];
            if (s < 0) missing.push_back(r);
            else used_[size_t(s)] = clock_;
        }
        const std::vector<int64_t> slots = oldest(int64_t(missing.size()));
        std::vector<T*> into;
        for (int64_t s : slots) {
            into.push_back(memory_.get() + s * stride_);
            if (row_of_[size_t(s)] >= 0) slot_of_[size_t(row_of_[size_t(s)])] = -1;
            row_of_[size_t(s)] = -1;
        }
        // This may be interrupted: the slots are empty until it is done.
        source.rows(missing, into.data(), threads, poll);
        for (size_t k = 0; k < missing.size(); ++k) {
            row_of_[size_t(slots[k])] = missing[k];
            slot_of_[size_t(missing[k])] = slots[k];
            used_[size_t(slots[k])] = clock_;
        }
        out.clear();
        for (int64_t r : which) out.push_back(memory_.get() + slot_of_[size_t(r)] * stride_);
        return int64_t(missing.size());
    }

  private:
    static constexpr int64_t kPad = 16;

    // Slots to overwrite: empty ones first, then by age; never those of this turn.
    std::vector<int64_t> oldest(int64_t count) const {
        std::vector<int64_t> slots;
        for (int64_t s = 0; s < capacity_; ++s)
            if (row_of_[size_t(s)] < 0) {
                if (int64_t(slots.size()) == count) return slots;
                slots.push_back(s);
            }
        if (int64_t(slots.size()) >= count) return slots;
        std::vector<std::pair<int64_t, int64_t>> age;
        for (int64_t s = 0; s < capacity_; ++s)
            if (row_of_[size_t(s)] >= 0 && used_[size_t(s)] != clock_) age.emplace_back(used_[size_t(s)], s);
        const auto want = std::min<int64_t>(count - int64_t(slots.size()), int64_t(age.size()));
        std::partial_sort(age.begin(), age.begin() + want, age.end());
        for (int64_t k = 0; k < want; ++k) slots.push_back(age[size_t(k)].second);
        return slots;
    }

    int64_t n_, bytes_, stride_ = 0, capacity_ = 0, allocated_ = 0, clock_ = 0;
    Buffer<T> memory_;
    std::vector<int64_t> slot_of_, row_of_, used_;
};

}  // namespace mercer
