-- replay: dead letters go back to work, their failures and deliveries forgiven, but not forgotten: see `remember`.
-- KEYS 1 dead  2 dead index  3 requests  4 stats  5 jobs root  6 tasks
-- ARGV stage, then letter ids
-- Returns how many went back. A letter that cannot be read stays.
-- Twice: a letter that went back is no longer there.
local dead, index, requests, stats, jobs_root, tasks = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local stage, replayed = ARGV[1], 0

-- Answers the job, or nothing if the letter is none.
local function send_back(letter)
  local reason, kind, at, err, body = string.match(letter, "^([^\31]*)\31([^\31]*)\31([^\31]*)\31([^\31]*)\31(.*)$")
  if kind == "request" then
    if not string.match(body, RECORD) then return end
    local job, run, priority, deliveries, failures, history, payload = parse(body)
    history = remember(history, at, reason, deliveries, failures, err)
    local record = compose(job, run, priority, "0", "0", history, payload)
    place(requests, jobs_root, job, member_of(sequence(stats, 1), record), priority, score)
    return job
  end
  local job, history, bytes = string.match(body or "", "^([^\31]*)\31([^\31]*)\31(.*)$")
  if not job then return end
  redis.call("XADD", tasks, "*", "task", bytes, "j", job, "h", remember(history, at, reason, "0", "0", err))
  count(stats, "streamed", 1)
  return job
end

for i = 2, #ARGV do
  local letter = redis.call("HGET", dead, ARGV[i])
  local job = letter and send_back(letter)
  if job then
    count_job(job, stage, "dead", -1)
    redis.call("HDEL", dead, ARGV[i])
    redis.call("ZREM", index, ARGV[i])
    count(stats, "replayed", 1)
    replayed = replayed + 1
  end
end
flush(jobs_root, now_ms())
return replayed
