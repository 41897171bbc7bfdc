-- Exact within one run, forgotten with it: a set per run, an intset as long as it is small.
return {
  add = function(root, run, id, version)
    return redis.call("SADD", root .. ":run:" .. run, id) == 1, ""
  end,
  over = function(root, run) redis.call("DEL", root .. ":run:" .. run) end,
}
