-- Exact and deletable: 64-bit fingerprints in P.buckets intsets, about 8.4 B each while a bucket stays an intset
-- (set-max-intset-entries).
return {
  add = function(root, run, id, version)
    local bucket = tonumber(string.sub(id, -7)) % P.buckets
    return redis.call("SADD", root .. ":" .. bucket, id) == 1, ""
  end,
  over = function(root, run) end,
}
