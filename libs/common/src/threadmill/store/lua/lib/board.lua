-- What the verbs of the schedule share. A board has its entry (JSON, model/board.py) in the hash `boards`; in `schedule`
-- the time it is due; and in looks:<its priority> the time a dispatcher looks at it, which may be sooner (what did its
-- scan bring?) or later (it is being scanned still). `looks` has the priorities there are. A board that is paused is in
-- the hash alone.
local function read(entry)
  local ok, body = pcall(cjson.decode, entry)
  return ok and type(body) == "table" and body or {}
end

local function priority_of(body)
  return string.format("%.0f", tonumber(body.priority) or 0)
end

local function forget_look(looks, priority, id)
  local class = looks .. ":" .. priority
  redis.call("ZREM", class, id)
  if redis.call("EXISTS", class) == 0 then redis.call("ZREM", looks, priority) end
end

local function plan_look(looks, priority, id, at)
  redis.call("ZADD", looks, priority, priority)
  redis.call("ZADD", looks .. ":" .. priority, at, id)
end

return {
  read = read,
  priority_of = priority_of,
  forget_look = forget_look,
  plan_look = plan_look,

  -- Tasks and requests of the stage that scans boards.
  queued = function(tasks, express, requests, leases, delayed)
    return redis.call("XLEN", tasks) + redis.call("XLEN", express) + redis.call("ZCARD", requests)
      + redis.call("ZCARD", leases) + redis.call("ZCARD", delayed)
  end,

  -- Of a scan's job: what is open in the stage, what it handed down (-1: nobody knows of the job any more), what is dead.
  books = function(jobs_root, job, stage, target)
    if job == "" then return 0, -1, 0 end
    local names = { stage .. ":accepted", stage .. ":done", stage .. ":dead", target .. ":accepted" }
    local books = redis.call("HMGET", jobs_root .. job, unpack(names))
    local accepted, dead = tonumber(books[1] or 0), tonumber(books[3] or 0)
    if accepted == 0 then return 0, -1, 0 end
    return accepted - tonumber(books[2] or 0) - dead, tonumber(books[4] or 0), dead
  end,

  -- "" stands for what is not there.
  is_as_read = function(schedule, boards, id, due, entry)
    return (redis.call("ZSCORE", schedule, id) or "") == due and (redis.call("HGET", boards, id) or "") == entry
  end,

  write = function(looks, schedule, boards, id, was, due, entry, look)
    local old, new = priority_of(read(was)), priority_of(read(entry))
    if entry == "" then redis.call("HDEL", boards, id) else redis.call("HSET", boards, id, entry) end
    if due == "" then redis.call("ZREM", schedule, id) else redis.call("ZADD", schedule, due, id) end
    if due == "" or old ~= new then forget_look(looks, old, id) end
    if due ~= "" then plan_look(looks, new, id, look) end
  end,
}
