-- Counts failures against limits, or only looks at them.
--
-- KEYS[i]       a counter; it expires when its window ends
-- ARGV[1]       how many failures to count: 1, or 0 to look
-- ARGV[2i]      the most that KEYS[i] allows
-- ARGV[2i + 1]  its window in milliseconds, which begins with the first failure
--
-- Returns the milliseconds to wait for the worst limit that has no room: for
-- this failure when counting, for another attempt when looking. Else 0.
local failures = tonumber(ARGV[1])
local wait = 0
for i, key in ipairs(KEYS) do
  local most, window = tonumber(ARGV[2 * i]), tonumber(ARGV[2 * i + 1])
  local count
  if failures > 0 then
    count = redis.call('INCRBY', key, failures)
  else
    count = tonumber(redis.call('GET', key) or '0') + 1
  end
  local left = redis.call('PTTL', key)
  if failures > 0 and left < 0 then
    redis.call('PEXPIRE', key, window)
    left = window
  end
  if count > most and left > wait then
    wait = left
  end
end
return wait
