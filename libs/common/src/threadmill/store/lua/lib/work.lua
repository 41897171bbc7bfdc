-- Shared by every verb that moves work: the record, the clock and the books.
--
-- record = job US run US priority US past US payload   (US = byte 31, which JSON never holds); priority "" is 0
-- past = "" for almost all, else deliveries FS failures FS history   (FS = byte 28)
-- history = what it died of before it was replayed; see `remember`
-- member = 8-byte big-endian sequence + record; equal payloads never collapse, equal scores keep their order
local US, FS = "\31", "\28"

local RECORD = "^([^\31]*)\31([^\31]*)\31(%-?%d*)\31([^\31]*)\31(.*)$"

local function parse(record)
  local job, run, priority, past, payload = string.match(record, RECORD)
  local deliveries, failures, history
  if past and past ~= "" then
    deliveries, failures, history = string.match(past, "^(%d*)\28(%d*)\28(.*)$")
  end
  return job, run, priority, deliveries or "0", failures or "0", history or "", payload
end

local function compose(job, run, priority, deliveries, failures, history, payload)
  local past = ""
  if history ~= "" or tonumber(deliveries) + tonumber(failures) > 0 then
    past = table.concat({ deliveries, failures, history }, FS)
  end
  return table.concat({ job, run, tonumber(priority) == 0 and "" or priority, past, payload }, US)
end

-- A task as it waits in a stream. The fields are the same for almost all, so that the stream keeps their names once for
-- many, and numbers take the fewest bytes of all values. A version is told where one was known before: then both are needed
-- to see what is new.
local function add_task(stream, job, key, parent, depth, known, version, extras)
  local fields = { "k", key, "p", parent, "j", job, "d", depth }
  if known ~= "" then
    fields[9], fields[10], fields[11], fields[12] = "o", known, "v", version
  end
  if extras ~= "" then
    fields[#fields + 1], fields[#fields + 2] = "x", extras
  end
  redis.call("XADD", stream, "*", unpack(fields))
end

-- A server that is full refuses a script whose first write may take memory, and lets one that has begun go on. What ends
-- work gives back more than it takes: it begins with a write that takes nothing.
local function although_full(key)
  redis.call("HDEL", key, "")
end

local function now_ms()
  local time = redis.call("TIME")
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Counters are added up here and written once a call: `flush` is every script's last act. A job's books are at
-- jobs_root .. job, in the same slot as everything else of the lane.
local moved, jobs_moved = {}, {}

local function count(stats, field, by)
  local fields = moved[stats] or {}
  moved[stats] = fields
  fields[field] = (fields[field] or 0) + by
end

local function count_job(job, stage, field, by)
  if job == "" then return end
  local fields = jobs_moved[job] or { open = 0 }
  jobs_moved[job] = fields
  if field == "accepted" then fields.open = fields.open + by end
  if field == "done" or field == "dead" then fields.open = fields.open - by end
  fields[stage .. ":" .. field] = (fields[stage .. ":" .. field] or 0) + by
end

-- What happened, for whoever listens; jobs_root .. "events" is nobody's books, for no job may be called so.
local function tell(jobs_root, ...)
  redis.call("XADD", jobs_root .. "events", "MAXLEN", "~", 10000, "*", ...)
end

-- All jobs, by when they began. Finished ones go with their books; a few are looked at whenever one ends.
local function index_job(jobs_root, job, now)
  local index = string.sub(jobs_root, 1, -2)
  redis.call("ZADD", index, "NX", now, job)
  for _, other in ipairs(redis.call("ZRANDMEMBER", index, 3)) do
    if other ~= job and redis.call("EXISTS", jobs_root .. other) == 0 then redis.call("ZREM", index, other) end
  end
end

-- A job is finished when nothing of it is open and no more of it is announced. That is said once, in its books and as an
-- event; its books are kept for `keep` seconds, by default thirty days.
local function finish_job(jobs_root, job, now)
  local key = jobs_root .. job
  local books = redis.call("HMGET", key, "open", "hold", "keep")
  if tonumber(books[1] or 0) ~= 0 or now < (tonumber(books[2] or 0) or 0) then return end
  if redis.call("HSETNX", key, "finished_at", now) == 0 then return end
  redis.call("EXPIRE", key, string.match(books[3] or "", "^%d+$") or 2592000)
  index_job(jobs_root, job, now)
  local sums, fields = { accepted = 0, done = 0, dead = 0, items = 0 }, redis.call("HGETALL", key)
  for i = 1, #fields, 2 do
    local name = string.match(fields[i], ":(%a+)$")
    if sums[name] then sums[name] = sums[name] + (tonumber(fields[i + 1]) or 0) end
  end
  tell(jobs_root, "event", "job_finished", "job", job, "accepted", sums.accepted, "done", sums.done, "dead", sums.dead,
    "items", sums.items)
end

local function flush(jobs_root, now)
  for stats, fields in pairs(moved) do
    for field, by in pairs(fields) do
      if by ~= 0 then redis.call("HINCRBY", stats, field, by) end
    end
  end
  for job, fields in pairs(jobs_moved) do
    local key, opened = jobs_root .. job, fields.open
    fields.open = 0
    for field, by in pairs(fields) do
      if by ~= 0 then redis.call("HINCRBY", key, field, by) end
    end
    local open = tonumber(opened ~= 0 and redis.call("HINCRBY", key, "open", opened) or redis.call("HGET", key, "open") or 0)
    if opened > 0 and open == opened then
      if redis.call("HDEL", key, "finished_at") == 1 then redis.call("PERSIST", key) end
      index_job(jobs_root, job, now)
    end
    if open == 0 then finish_job(jobs_root, job, now) end
  end
end

-- What an operator added to the priority of a job.
local boosts = {}
local function boost(jobs_root, job)
  if job == "" then return 0 end
  boosts[job] = boosts[job] or tonumber(redis.call("HGET", jobs_root .. job, "priority") or 0) or 0
  return boosts[job]
end

-- A run is all the pages that one task causes in its stage. Runs with one open page have no entry: a chain of pages
-- costs nothing. A parked page keeps its run open: it may be replayed. Returns true when the run is over.
local function run_moves(runs, run, by)
  if run == "" or by == 0 then return false end
  local several = redis.call("HGET", runs, run)
  local open = tonumber(several or 1) + by
  if open > 1 then
    redis.call("HSET", runs, run, open)
  elseif several then
    redis.call("HDEL", runs, run)
  end
  return open <= 0
end

local function sequence(stats, n)
  return redis.call("HINCRBY", stats, "sequence", n) - n
end

local function member_of(seq, record)
  return struct.pack(">I8", seq) .. record
end

-- What an operator asked for by hand is served before everything else, whatever the order.
local EXPRESS = 1000000

local function place(requests, jobs_root, job, member, priority, score)
  priority = tonumber(priority) or 0
  local seq = struct.unpack(">I8", member)
  local at = priority >= EXPRESS and -1e15 or score(priority + boost(jobs_root, job), seq)
  redis.call("ZADD", requests, at, member)
end

-- A death is added to the history that a replayed letter takes along: fields at, reason, deliveries, failures, error,
-- with byte 29 between fields and byte 30 after each death (neither is in a letter's texts). The last ten are kept.
local function remember(history, at, reason, deliveries, failures, err)
  local deaths = {}
  for death in string.gmatch(history, "[^\30]+\30") do deaths[#deaths + 1] = death end
  deaths[#deaths + 1] = table.concat({ at, string.sub(reason, 1, 500), deliveries, failures, string.sub(err, 1, 500) }, "\29") .. "\30"
  return table.concat(deaths, "", math.max(1, #deaths - 9))
end

-- A letter keeps what is needed to show and to replay it: reason US kind US at US error US body. The body is a
-- request's record, or job US history US bytes of a task.
local function bury(dead, index, stats, now, reason, kind, err, body)
  local id = tostring(redis.call("HINCRBY", stats, "letters", 1))
  reason = string.gsub(reason, "%c", " ")
  err = string.gsub(string.sub(err, 1, 2000), "%c", " ")
  redis.call("HSET", dead, id, table.concat({ reason, kind, now, err, body }, US))
  redis.call("ZADD", index, now, id)
  return id
end
