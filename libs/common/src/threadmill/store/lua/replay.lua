-- replay: dead letters go back to work, their failures and deliveries forgiven, but not forgotten: see `remember`.
-- KEYS 1 dead  2 dead index  3 requests  4 stats  5 jobs root  6 tasks
-- ARGV stage, then letter ids
-- Returns how many went back.
-- Twice: a letter that went back is no longer there.
local dead, index, requests, stats, jobs_root, tasks = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stage, replayed = ARGV[1], 0
for i = 2, #ARGV do
  local letter = redis.call("HGET", dead, ARGV[i])
  if letter then
    local reason, kind, at, err, body = string.match(letter, "^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$")
    local task_job, task_history, bytes = string.match(body or "", "^([^\31]*)\31([^\31]*)\31(.*)$")
    if kind == "request" then
      local job, run, priority, deliveries, failures, history, payload = parse(body)
      history = remember(history, at, reason, deliveries, failures, err)
      local record = compose(job, run, priority, "0", "0", history, payload)
      place(requests, jobs_root, job, member_of(sequence(stats, 1), record), priority, score)
      count_job(job, stage, "dead", -1)
    elseif bytes then
      redis.call("XADD", tasks, "*", "task", bytes, "j", task_job, "h", remember(task_history, at, reason, "0", "0", err))
      count(stats, "streamed", 1)
      count_job(task_job, stage, "dead", -1)
    end
    if bytes or kind == "request" then -- what is no letter stays
      redis.call("HDEL", dead, ARGV[i])
      redis.call("ZREM", index, ARGV[i])
      count(stats, "replayed", 1)
      replayed = replayed + 1
    end
  end
end
flush(jobs_root, now_ms())
return replayed
