package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/argon2"
)

const (
	saltBytes = 16
	hashBytes = 32
)

// passwordHasher hashes passwords with argon2id, each hash in a slot.
type passwordHasher struct {
	cost  Argon2
	slots *hashSlots
	// decoy is a hash of the same form and cost that matches no password. It replaces the
	// hash of an unknown user, so that such a login takes as long as any other.
	decoy string
}

func newPasswordHasher(cost Argon2, slots int) *passwordHasher {
	return &passwordHasher{
		cost: cost, slots: newHashSlots(slots),
		decoy: formatHash(cost, randomBytes(saltBytes), randomBytes(hashBytes)),
	}
}

// Hash returns the PHC string of a password of an authenticated caller, with a new salt.
func (p *passwordHasher) Hash(ctx context.Context, password string) (string, error) {
	releaseSlot, err := p.slots.acquire(ctx, slotClient{known: true})
	if err != nil {
		return "", err
	}
	defer releaseSlot()
	return p.hashWithNewSalt(password), nil
}

// hashRandom returns the hash of a random password, for a user who logs in without one.
func (p *passwordHasher) hashRandom(ctx context.Context) (string, error) {
	return p.Hash(ctx, rand.Text())
}

func (p *passwordHasher) hashWithNewSalt(password string) string {
	salt := randomBytes(saltBytes)
	sum := argon2.IDKey([]byte(password), salt, p.cost.Passes, p.cost.MemoryKiB, p.cost.Lanes, hashBytes)
	return formatHash(p.cost, salt, sum)
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}

// verifyPassword reports whether the password has the stored hash. The caller holds a
// slot.
func verifyPassword(stored, password string) (bool, error) {
	cost, salt, want, err := parseHash(stored)
	if err != nil {
		return false, err
	}
	got := argon2.IDKey([]byte(password), salt, cost.Passes, cost.MemoryKiB, cost.Lanes, uint32(len(want)))
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

const costFormat = "m=%d,t=%d,p=%d"

// String returns the cost in PHC form.
func (a Argon2) String() string { return fmt.Sprintf(costFormat, a.MemoryKiB, a.Passes, a.Lanes) }

var errNotArgon2id = errors.New("a stored password is not an argon2id hash")

// formatHash returns the PHC string of a hash.
func formatHash(cost Argon2, salt, sum []byte) string {
	return fmt.Sprintf("$argon2id$v=%d$%s$%s$%s", argon2.Version, cost,
		base64.RawStdEncoding.EncodeToString(salt), base64.RawStdEncoding.EncodeToString(sum))
}

// parseHash parses a PHC string of formatHash, of any valid cost.
func parseHash(stored string) (cost Argon2, salt, sum []byte, err error) {
	parts := strings.Split(stored, "$")
	if len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return Argon2{}, nil, nil, errNotArgon2id
	}

	_, err = fmt.Sscanf(parts[3], costFormat, &cost.MemoryKiB, &cost.Passes, &cost.Lanes)
	if err != nil || cost.String() != parts[3] || cost.check() != nil {
		return Argon2{}, nil, nil, errNotArgon2id
	}

	salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4])
	if err != nil || len(salt) < 8 {
		return Argon2{}, nil, nil, errNotArgon2id
	}

	sum, err = base64.RawStdEncoding.Strict().DecodeString(parts[5])
	if err != nil || len(sum) < 16 || len(sum) > 64 {
		return Argon2{}, nil, nil, errNotArgon2id
	}

	return cost, salt, sum, nil
}
