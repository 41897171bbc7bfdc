-- drop: dead letters are given up for good, because an operator said so. They count as done, and as dropped.
-- KEYS 1 dead  2 dead index  3 stats  4 runs  5 seen root  6 jobs root
-- ARGV stage, then letter ids
-- Returns how many were dropped.
-- Twice: a letter that was dropped is no longer there.
local dead, index, stats, runs, seen_root, jobs_root = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stage, dropped = ARGV[1], 0
for i = 2, #ARGV do
  local letter = redis.call("HGET", dead, ARGV[i])
  if letter then
    local kind, body = string.match(letter, "^[^\31]*\31([^\31]*)\31[^\31]*\31[^\31]*\31(.*)$")
    -- A letter that cannot be read belongs to no job and no run that anybody could name.
    local job = string.match(body or "", "^([^\31]*)\31") or ""
    local run = kind == "request" and select(2, parse(body)) or ""
    count_job(job, stage, "dead", -1)
    count_job(job, stage, "done", 1)
    count(stats, "done", 1)
    count(stats, "dropped", 1)
    if run_moves(runs, run, -1) then seen_request.over(seen_root, run) end
    redis.call("HDEL", dead, ARGV[i])
    redis.call("ZREM", index, ARGV[i])
    dropped = dropped + 1
  end
end
flush(jobs_root, now_ms())
return dropped
