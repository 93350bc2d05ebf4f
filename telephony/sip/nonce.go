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

	mu        sync.Mutex
	uses      map[string]nonceUse // by nonce
	lastSweep time.Time
}

// nonceUse is what is stored of a nonce that had a valid answer.
type nonceUse struct {
	count   int // highest nonce count seen
	expires time.Time
}

// maxNonces limits memory. Above it, phones are challenged again.
const maxNonces = 100_000

const (
	nonceTimeSize   = 8
	nonceRandomSize = 8
	nonceMACSize    = 16
	nonceSize       = nonceTimeSize + nonceRandomSize + nonceMACSize
)

func newNonces(key [32]byte, lifetime time.Duration) *nonces {
	return &nonces{key: key, lifetime: lifetime, uses: map[string]nonceUse{}}
}

// issue returns a nonce for an address.
func (n *nonces) issue(to netip.Addr, now time.Time) string {
	var nonce [nonceSize]byte
	binary.BigEndian.PutUint64(nonce[:], uint64(now.UnixNano()))
	rand.Read(nonce[nonceTimeSize : nonceTimeSize+nonceRandomSize]) // never fails
	copy(nonce[nonceTimeSize+nonceRandomSize:], n.mac(nonce[:nonceTimeSize+nonceRandomSize], to))
	return base64.RawURLEncoding.EncodeToString(nonce[:])
}

func (n *nonces) mac(over []byte, to netip.Addr) []byte {
	address := to.Unmap().WithZone("").As16()
	mac := hmac.New(sha256.New, n.key[:])
	mac.Write(over)
	mac.Write(address[:])
	return mac.Sum(nil)[:nonceMACSize]
}

// valid reports whether a nonce was issued here, for the address, and has not expired.
func (n *nonces) valid(nonce string, from netip.Addr, now time.Time) bool {
	raw, err := base64.RawURLEncoding.DecodeString(nonce)
	if err != nil || len(raw) != nonceSize ||
		!hmac.Equal(raw[nonceTimeSize+nonceRandomSize:], n.mac(raw[:nonceTimeSize+nonceRandomSize], from)) {
		return false
	}
	age := now.Sub(time.Unix(0, int64(binary.BigEndian.Uint64(raw))))
	return age >= 0 && age <= n.lifetime
}

// recordUse records the nonce count of a valid answer. It returns false for a replay: a count that is not
// higher than the last.
func (n *nonces) recordUse(nonce string, count int, now time.Time) bool {
	n.mu.Lock()
	defer n.mu.Unlock()

	if now.Sub(n.lastSweep) > n.lifetime {
		n.lastSweep = now
		for stored, c := range n.uses {
			if now.After(c.expires) {
				delete(n.uses, stored)
			}
		}
	}

	last, seen := n.uses[nonce]
	if seen && count <= last.count || !seen && len(n.uses) >= maxNonces {
		return false
	}

	n.uses[nonce] = nonceUse{count: count, expires: now.Add(n.lifetime)}
	return true
}
