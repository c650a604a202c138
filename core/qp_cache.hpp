// The solver's memory of rows: the least recently used give way, within a budget fixed at the start.
// The budget is an upper bound.  The first touch of fresh memory costs more than a row of a narrow kernel, so
// that room is taken as rows turn out to be asked for again.
#pragma once
#include <algorithm>
#include <vector>

#include "prepare.hpp"
#include "qp.hpp"

namespace mercer {

// Memory that one worker keeps from problem to problem: the first touch of its pages is paid once.
class KeptMemory {
  public:
    // Room for so many T; what was there before may be lost.
    template <class T> T* room(int64_t count) {
        const int64_t bytes = count * int64_t(sizeof(T));
        if (bytes > bytes_) {
            buffer_.reset(bytes_ = bytes);
            touched = 0;
        }
        return reinterpret_cast<T*>(buffer_.get());
    }
    // So many bytes from the start may have been written.
    int64_t touched = 0;

  private:
    Buffer<char> buffer_;
    int64_t bytes_ = 0;
};
// What a solver needs much of: rows, and the block of a working set as computed and as read.
struct QpMemory {
    KeptMemory rows, square, block;
};

// Invariants: slot_of[r] = s iff row_of[s] = r; a filled slot holds K[r, columns] for the columns in focus;
// slots from open_ on are empty and their memory was not touched.
template <class T> class RowCache {
  public:
    // `thrifty`: rows cost less than the first touch of the memory that would keep them.
    RowCache(int64_t n, int64_t bytes, bool thrifty, KeptMemory& memory)
        : n_(n), bytes_(bytes), thrifty_(thrifty), memory_(memory) {}

    // How many rows of `columns` entries so many bytes hold.
    static int64_t affordable(int64_t bytes, int64_t columns) {
        return std::max<int64_t>(1, bytes / (round_up(columns, kPad) * int64_t(sizeof(T))));
    }
    // Forgets everything; rows are `columns` long from now on.  At least `least` rows fit.
    void reset(int64_t columns, int64_t least) {
        stride_ = round_up(columns, kPad);
        capacity_ = std::min(n_, std::max(affordable(bytes_, columns), least));
        allocated_ = std::max(allocated_, capacity_ * stride_);
        at_ = memory_.room<T>(allocated_);
        open_ = capacity_;
        if (thrifty_) open_ = std::min(capacity_, std::max(kSets * least, touched_slots()));
        computed_.assign(size_t(n_), 0);
        slot_of_.assign(size_t(n_), -1);
        row_of_.assign(size_t(capacity_), -1);
        used_.assign(size_t(capacity_), 0);
    }
    // Keeps only the columns at these increasing positions, and only the rows that are among them
    // (place[r] >= 0): the others rest too.  More rows fit afterwards.
    void narrow(const std::vector<int64_t>& positions, const std::vector<int64_t>& place, int threads) {
        const int64_t count = int64_t(positions.size()), stride = round_up(count, kPad);
        const std::vector<int64_t> staying = rows_among(place);
        select_columns(staying, positions, stride, threads);
        for (size_t kept = 0; kept < staying.size(); ++kept) {
            const int64_t s = staying[kept], r = row_of_[size_t(s)];
            row_of_[kept] = r, used_[kept] = used_[size_t(s)];
            slot_of_[size_t(r)] = int64_t(kept);
        }
        stride_ = stride;
        capacity_ = std::max(capacity_, std::min(n_, allocated_ / stride));
        open_ = thrifty_ ? std::min(capacity_, std::max(open_, touched_slots())) : capacity_;
        row_of_.resize(staying.size()), used_.resize(staying.size());
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
        open_for(missing);
        const std::vector<int64_t> slots = oldest(int64_t(missing.size()));
        std::vector<T*> into;
        for (int64_t s : slots) {
            into.push_back(at_ + s * stride_);
            if (row_of_[size_t(s)] >= 0) slot_of_[size_t(row_of_[size_t(s)])] = -1;
            row_of_[size_t(s)] = -1;
            memory_.touched = std::max(memory_.touched, (s + 1) * slot_bytes());
        }
        // This may be interrupted: the slots are empty until it is done.
        source.rows(missing, into.data(), threads, poll);
        for (size_t k = 0; k < missing.size(); ++k) {
            row_of_[size_t(slots[k])] = missing[k];
            slot_of_[size_t(missing[k])] = slots[k];
            used_[size_t(slots[k])] = clock_;
        }
        out.clear();
        for (int64_t r : which) out.push_back(at_ + slot_of_[size_t(r)] * stride_);
        return int64_t(missing.size());
    }

  private:
    static constexpr int64_t kPad = 16;
    // Working sets for whose rows there is room from the start, and slots that a row opens when it has to be
    // computed again.
    static constexpr int64_t kSets = 4, kMore = 2;

    // The slots of rows that are among the columns in focus; the others are forgotten.
    std::vector<int64_t> rows_among(const std::vector<int64_t>& place) {
        std::vector<int64_t> slots;
        for (int64_t s = 0; s < capacity_; ++s) {
            const int64_t r = row_of_[size_t(s)];
            if (r < 0) continue;
            if (place[size_t(r)] >= 0) slots.push_back(s);
            else slot_of_[size_t(r)] = -1;
        }
        return slots;
    }
    // The entries at increasing positions of slot slots[k] become slot k, `stride` apart.  Slots go in waves:
    // what a wave writes lies before all that it and the next ones read.  The first slots may lie where they
    // are read from, and go one by one, each from its front.
    void select_columns(const std::vector<int64_t>& slots, const std::vector<int64_t>& positions,
                        int64_t stride, int threads) {
        constexpr int64_t kTogether = 32;
        const int64_t count = int64_t(positions.size()), all = int64_t(slots.size());
        const std::vector<int32_t> near(positions.begin(), positions.end());  // read once for each row
        const int32_t* at = near.data();
        const auto select = [&](int64_t k) {
            const T* from = at_ + slots[size_t(k)] * stride_;
            T* to = at_ + k * stride;
            for (int64_t c = 0; c < count; ++c) to[c] = from[at[c]];
        };
        const Poll no_poll;
        for (int64_t first = 0, end; first < all; first = end) {
            end = std::min(all, std::max(first + 1, slots[size_t(first)] * stride_ / stride));
            Crew crew(crew_size(threads, 4 * (end - first) * count), no_poll);
            crew.run((end - first + kTogether - 1) / kTogether, [&](int, auto& take) {
                for (int64_t t; (t = take()) >= 0;)
                    for (int64_t k = first + t * kTogether; k < std::min(end, first + (t + 1) * kTogether);
                         ++k)
                        select(k);
            });
        }
    }
    void open_for(const std::vector<int64_t>& missing) {
        int64_t again = 0;
        for (int64_t r : missing) again += computed_[size_t(r)], computed_[size_t(r)] = 1;
        open_ = std::min(capacity_, open_ + kMore * again);
    }
    // The bytes of a slot, and how many slots have been written before, by this problem or an earlier one.
    int64_t slot_bytes() const { return stride_ * int64_t(sizeof(T)); }
    int64_t touched_slots() const { return memory_.touched / slot_bytes(); }
    // Slots to overwrite: empty ones first, then by age; never those of this turn.
    std::vector<int64_t> oldest(int64_t count) const {
        std::vector<int64_t> slots;
        for (int64_t s = 0; s < open_; ++s)
            if (row_of_[size_t(s)] < 0) {
                if (int64_t(slots.size()) == count) return slots;
                slots.push_back(s);
            }
        if (int64_t(slots.size()) >= count) return slots;
        std::vector<std::pair<int64_t, int64_t>> age;
        for (int64_t s = 0; s < open_; ++s)
            if (row_of_[size_t(s)] >= 0 && used_[size_t(s)] != clock_) age.emplace_back(used_[size_t(s)], s);
        const auto want = std::min<int64_t>(count - int64_t(slots.size()), int64_t(age.size()));
        std::partial_sort(age.begin(), age.begin() + want, age.end());
        for (int64_t k = 0; k < want; ++k) slots.push_back(age[size_t(k)].second);
        return slots;
    }

    int64_t n_, bytes_, stride_ = 0, capacity_ = 0, open_ = 0, allocated_ = 0, clock_ = 0;
    bool thrifty_;
    KeptMemory& memory_;
    T* at_ = nullptr;
    std::vector<char> computed_;  // since the last reset
    std::vector<int64_t> slot_of_, row_of_, used_;
};

}  // namespace mercer
