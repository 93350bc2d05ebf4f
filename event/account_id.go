package event

// ValidAccountID reports whether s can be an account's id: 1 to 64 of [A-Za-z0-9_.-].
// Other ids need no look-up.
func ValidAccountID(s string) bool {
	if len(s) == 0 || len(s) > maxAccountIDBytes {
		return false
	}
	for i := range len(s) {
		if !accountIDBytes[s[i]] {
			return false
		}
	}
	return true
}

const maxAccountIDBytes = 64

var accountIDBytes = func() (valid [256]bool) {
	for _, c := range []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-") {
		valid[c] = true
	}
	return valid
}()
