-- purge: waiting or parked work is taken out of the stage, because an operator said so. It counts as done, and under the
-- counter that is given. What a worker has leased meanwhile is left to it.
-- KEYS 1 tasks  2 express  3 requests  4 delayed  5 dead  6 dead index  7 stats  8 runs  9 seen root  10 jobs root
-- ARGV stage, group, counter, place (tasks, express, requests, delayed or dead), then per piece:
--      its id there (entry id, member or letter id), job, streamed (of a task: 1 = counted when submitted, 0 = pushed from
--      outside), filter id of its key ("" = what is known of it stays), version known before, 1 if it was forced
-- Returns how many were still there.
-- Twice: a piece that was taken out is no longer there.
local tasks, express, requests, delayed, dead, index = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stats, runs, seen_root, jobs_root = KEYS[7], KEYS[8], KEYS[9], KEYS[10]
local stage, group, counter, from = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

-- Each answers the job and the run of what it took out, or nothing if it was not there.
local function from_stream(stream)
  return function(id, job, streamed)
    redis.call("XACK", stream, group, id)
    if redis.call("XDEL", stream, id) == 0 then return nil end
    if streamed == "1" then
      count(stats, "streamed", -1)
    else
      count(stats, "accepted", 1)
      count_job(job, stage, "accepted", 1)
    end
    return job, ""
  end
end

local function from_queue(queue)
  return function(member)
    if redis.call("ZREM", queue, member) == 0 then return nil end
    local job, run = parse(string.sub(member, 9))
    return job or "", run or ""
  end
end

local function from_dead(id)
  local letter = redis.call("HGET", dead, id)
  if not letter then return nil end
  redis.call("HDEL", dead, id)
  redis.call("ZREM", index, id)
  local kind, body = string.match(letter, "^[^\31]*\31([^\31]*)\31[^\31]*\31[^\31]*\31(.*)$")
  local job = string.match(body or "", "^([^\31]*)\31") or ""
  local run = kind == "request" and select(2, parse(body)) or ""
  count_job(job, stage, "dead", -1)
  return job, run
end

local take_out = {
  tasks = from_stream(tasks),
  express = from_stream(express),
  requests = from_queue(requests),
  delayed = from_queue(delayed),
  dead = from_dead,
}
local purged = 0
for i = 5, #ARGV, 6 do
  local id, said_job, streamed, key_id, known, forced = unpack(ARGV, i, i + 5)
  local job, run = take_out[from](id, said_job, streamed)
  if job then
    purged = purged + 1
    count(stats, "done", 1)
    count(stats, counter, 1)
    count_job(job, stage, "done", 1)
    if run_moves(runs, run, -1) then seen_request.over(seen_root, run) end
    if key_id ~= "" then seen_task.take_back(seen_root, key_id, known, forced == "1") end
  end
end
flush(jobs_root, now_ms())
return purged
