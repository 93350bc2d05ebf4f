-- Acquires one lease in every scope, or none.
-- KEYS: one sorted set for each scope, of members "node|connection|since", scored by
-- expiry (ms). ARGV: now, until, member, replace (0/1), then the maximum of each scope.
-- Returns the index of the first full scope, or 0 and the evicted members.
local now, expiry, member, replace = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4] == "1"
local evicted = {}
for i, key in ipairs(KEYS) do
  redis.call("ZREMRANGEBYSCORE", key, "-inf", now)
  local maximum = tonumber(ARGV[4 + i])
  if redis.call("ZCARD", key) >= maximum and not replace then
    return {i}
  end
end
local result = {0}
for i, key in ipairs(KEYS) do
  local maximum = tonumber(ARGV[4 + i])
  local over = redis.call("ZCARD", key) - maximum + 1
  if over > 0 then
    local members = redis.call("ZRANGE", key, 0, -1)
    table.sort(members, function(a, b)
      return tonumber(string.match(a, "|(%d+)$")) < tonumber(string.match(b, "|(%d+)$"))
    end)
    for j = 1, over do
      redis.call("ZREM", key, members[j])
      result[#result + 1] = members[j]
    end
  end
  redis.call("ZADD", key, expiry, member)
  redis.call("PEXPIRE", key, expiry - now)
end
return result
