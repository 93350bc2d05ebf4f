-- Acquires a slot for a call unless its user or its account has too many.
--
-- KEYS[1], KEYS[2]  the calls of the user and of the account: sorted sets, scored by expiry
-- ARGV[1]           lifetime of a slot in milliseconds
-- ARGV[2]           the call
-- ARGV[3], ARGV[4]  the most calls of the user and of the account; 0: no limit
--
-- Returns 0, or the index of the key that is full.
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)
for i, key in ipairs(KEYS) do
  redis.call('ZREMRANGEBYSCORE', key, '-inf', now)
  local most = tonumber(ARGV[2 + i])
  if most > 0 and redis.call('ZCARD', key) >= most and not redis.call('ZSCORE', key, ARGV[2]) then
    return i
  end
end
for _, key in ipairs(KEYS) do
  redis.call('ZADD', key, now + ARGV[1], ARGV[2])
  redis.call('PEXPIRE', key, ARGV[1])
end
return 0
