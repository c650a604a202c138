// Threads of one call: born with it, joined before it returns.  Nothing outlives a call, so fork is safe.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

namespace mercer {

struct Interrupted : std::exception {
    const char* what() const noexcept override { return "interrupted"; }
};

// Answers whether the user wants to stop.  Only ever called on the thread that made the call.
using Poll = std::function<bool()>;

// Helpers that stay from crew to crew of one long call on this thread: starting a thread anew, with fresh
// memory for its stack, costs as much as many a crew's work.  They start when first needed and are joined
// when the team goes.  Crews of other threads, and a crew inside a crew, start threads of their own.
class Team {
  public:
    Team() : outer_(current()) { current() = this; }
    Team(const Team&) = delete;
    ~Team() {
        {
            std::lock_guard lock(mutex_);
            leaving_ = true;
        }
        wake_.notify_all();
        for (auto& t : helpers_) t.join();
        current() = outer_;
    }
    // The team of this thread if there is one and it has nothing to do, else null.
    static Team* at_hand() {
        Team* team = current();
        if (team && team->busy_) return nullptr;
        return team;
    }
    // Whether the next crew of this thread finds helpers that have begun.
    static bool waiting() {
        const Team* team = at_hand();
        return team && !team->helpers_.empty();
    }
    // Runs job(1) .. job(count) on helpers and own() here, and returns when all are done; while it waits it
    // calls idle() every `period`.  A helper that the system refuses is one less.  Nothing may throw.
    template <class Own, class Idle>
    void together(int64_t count, const std::function<void(int)>& job, std::chrono::milliseconds period,
                  const Own& own, const Idle& idle) {
        hire(count);
        busy_ = true;
        {
            std::lock_guard lock(mutex_);
            job_ = &job;
            wanted_ = std::min(count, int64_t(helpers_.size()));
            running_ = wanted_;
            ++turn_;
        }
        wake_.notify_all();
        own();
        std::unique_lock lock(mutex_);
        while (running_ > 0) {
            if (done_.wait_for(lock, period) == std::cv_status::no_timeout) continue;
            lock.unlock();  // asking may take the interpreter lock; never hold ours meanwhile
            idle();
            lock.lock();
        }
        busy_ = false;
    }

  private:
    static Team*& current() {
        thread_local Team* team = nullptr;
        return team;
    }
    void hire(int64_t count) {
        try {
            while (int64_t(helpers_.size()) < count) {
                const int number = int(helpers_.size()) + 1;
                helpers_.emplace_back([this, number, seen = turn_] { serve(number, seen); });
            }
        } catch (const std::system_error&) {
            // The system refuses more threads: those that run suffice.
        }
    }
    void serve(int number, int64_t seen) {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return leaving_ || turn_ != seen; });
            if (leaving_) return;
            seen = turn_;
            if (number > wanted_) continue;
            const auto* job = job_;
            lock.unlock();
            (*job)(number);
            lock.lock();
            if (--running_ == 0) done_.notify_one();
        }
    }

    Team* outer_;
    bool busy_ = false, leaving_ = false;
    int64_t turn_ = 0, wanted_ = 0, running_ = 0;
    const std::function<void(int)>* job_ = nullptr;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    std::vector<std::thread> helpers_;
};

// Whether the least work gets threads, too: for tests of what threads may not change.
inline std::atomic<bool> threads_for_all{false};

// How many threads work of so many steps gets, all or one. A step is a multiply-add, some thirtieth of a
// nanosecond. A thread takes 50 to 100 us to begin, a helper that waits a part of that to wake: work that
// one thread has done in about 250 or 30 us would not be done sooner with them.
inline int crew_size(int threads, int64_t steps) {
    constexpr int64_t kToBegin = 1 << 23, kToWake = 1 << 20;
    if (threads <= 1 || threads_for_all) return threads;
    return steps < (Team::waiting() ? kToWake : kToBegin) ? 1 : threads;
}

class Crew {
  public:
    Crew(int threads, const Poll& poll)
        : threads_(threads), poll_(poll), next_poll_(clock::now() + kPeriod) {}

    // Runs body(worker, take) on up to `threads` workers, worker 0 being the caller; take() hands out the
    // tasks 0 .. tasks-1 in order, then -1.  The body calls checkpoint(worker) every few milliseconds.
    //   order   which worker gets which task is left to chance; bodies must not let it show
    // Throws what the first failing worker threw, or Interrupted.
    template <class Body> void run(int64_t tasks, const Body& body) {
        std::atomic<int64_t> counter{0};
        auto take = [&]() -> int64_t {
            int64_t t = counter.fetch_add(1, std::memory_order_relaxed);
            return t < tasks ? t : -1;
        };
        auto guarded = [&](int worker) {
            try {
                body(worker, take);
            } catch (...) {
                std::lock_guard lock(mutex_);
                if (!error_) error_ = std::current_exception();
                stop_ = true;
            }
        };
        auto idle = [&] {
            if (!stop_ && poll_ && poll_()) interrupt();
        };
        const int64_t crew = std::min<int64_t>(threads_, tasks);
        Team* team = Team::at_hand();
        if (crew > 1 && team) team->together(crew - 1, guarded, kPeriod, [&] { guarded(0); }, idle);
        else if (crew > 1) Team().together(crew - 1, guarded, kPeriod, [&] { guarded(0); }, idle);
        else guarded(0);
        if (error_) std::rethrow_exception(error_);
        if (interrupted_) throw Interrupted();
    }

    void checkpoint(int worker) {
        if (stop_.load(std::memory_order_relaxed)) throw Interrupted();
        if (worker != 0 || !poll_) return;
        const auto now = clock::now();
        if (now < next_poll_) return;
        next_poll_ = now + kPeriod;
        if (poll_()) {
            interrupt();
            throw Interrupted();
        }
    }

  private:
    using clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds kPeriod{50};
    void interrupt() {
        interrupted_ = true;
        stop_ = true;
    }

    int threads_;
    const Poll& poll_;
    clock::time_point next_poll_;
    std::atomic<bool> stop_{false};
    bool interrupted_ = false;
    std::mutex mutex_;
    std::exception_ptr error_;
};

}  // namespace mercer
