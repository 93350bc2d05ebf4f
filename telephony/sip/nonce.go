package sip

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/netip"
	"sync"
	"time"
)

// nonces issues challenges without storing them: each contains its time and a MAC over it and the
// address of the phone. A phone that answers one has received it at that address. Only nonces with a
// valid answer are stored, to reject replays.
type nonces struct {
	key      [32]byte
	lifetime time.Duration

	mu      sync.Mutex
	counted map[string]counted
	swept   time.Time
}

type counted struct {
	count   int // highest nonce count seen
	expires time.Time
}

// maxNonces limits memory. Above it, phones are challenged again.
const maxNonces = 100_000

const (
	nonceTime   = 8
	nonceRandom = 8
	nonceCode   = 16
	nonceSize   = nonceTime + nonceRandom + nonceCode
)

func newNonces(key [32]byte, lifetime time.Duration) *nonces {
	return &nonces{key: key, lifetime: lifetime, counted: map[string]counted{}}
}

// make returns a nonce for an address.
func (n *nonces) make(to netip.Addr, now time.Time) string {
	var nonce [nonceSize]byte
	binary.BigEndian.PutUint64(nonce[:], uint64(now.UnixNano()))
	rand.Read(nonce[nonceTime : nonceTime+nonceRandom]) // never fails
	copy(nonce[nonceTime+nonceRandom:], n.code(nonce[:nonceTime+nonceRandom], to))
	return base64.RawURLEncoding.EncodeToString(nonce[:])
}

func (n *nonces) code(over []byte, to netip.Addr) []byte {
	address := to.Unmap().WithZone("").As16()
	mac := hmac.New(sha256.New, n.key[:])
	mac.Write(over)
	mac.Write(address[:])
	return mac.Sum(nil)[:nonceCode]
}

// fresh reports whether a nonce was issued here, for the address, and has not expired.
func (n *nonces) fresh(nonce string, from netip.Addr, now time.Time) bool {
	raw, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(raw) != nonceSize || !hmac.Equal(raw[nonceTime+nonceRandom:], n.code(raw[:nonceTime+nonceRandom], from)) {
		return false
	}
	age := now.Sub(time.Unix(0, int64(binary.BigEndian.Uint64(raw))))
	return age >= 0 && age <= n.lifetime
}

// use records the nonce count of a valid answer. It returns false for a replay: a count that is not
// higher than the last.
func (n *nonces) use(nonce string, count int, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if now.Sub(n.swept) > n.lifetime {
		n.swept = now
		for one, c := range n.counted {
			if now.After(c.expires) {
				delete(n.counted, one)
			}
		}
	}
	before, had := n.counted[nonce]
	if had && count <= before.count || !had && len(n.counted) >= maxNonces {
		return false
	}
	n.counted[nonce] = counted{count: count, expires: now.Add(n.lifetime)}
	return true
}
