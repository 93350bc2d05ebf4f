package recording

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"math"

	"trunkline/config/encryption"
	"trunkline/internal/fault"
	"trunkline/recording/envelope"
)

// seals finds what seals and opens recordings: the accounts' keys, and the roots derived from them.
type seals struct {
	keys  Keys
	roots *envelope.RootCache
}

// forNew returns a sealer with the account's current key, nil if the account's
// recordings are stored plain.
func (s *seals) forNew(ctx context.Context, accountID string) (*recordingSealer, error) {
	current, err := s.keys.Current(ctx, accountID)
	if err != nil {
		return nil, err
	}
	if !current.Enabled {
		return nil, nil
	}
	return s.newSealer(current)
}

// recordingSealer has the algorithm and key for new recordings. Wipe its root after use.
type recordingSealer struct {
	suite envelope.Suite
	key   envelope.Key
}

func (s *seals) newSealer(current encryption.Sealing) (*recordingSealer, error) {
	suite, ok := envelope.ParseSuite(current.Algorithm)
	k := current.Key
	if !ok || k.Key == "" || k.Salt == "" || k.Version < 1 || k.Version > math.MaxUint32 {
		return nil, fault.Internal(fmt.Errorf("algorithm %q, key version %d", current.Algorithm, k.Version),
			"there is no usable key")
	}

	root, err := s.roots.Root(k.Key, k.Salt, envelope.Iterations)
	if err != nil {
		return nil, fault.Internal(err, "the key cannot be used")
	}

	return &recordingSealer{suite, envelope.Key{ID: k.ID, Version: uint32(k.Version), Root: root}}, nil
}

// ofJournal returns the sealer with which a recording of a call began, nil if it is plain.
func (s *seals) ofJournal(ctx context.Context, d *liveRecordingDescription) (*recordingSealer, error) {
	if !d.Sealed {
		return nil, nil
	}
	key, err := s.keys.Key(ctx, d.AccountID, d.KeyVersion)
	if err != nil {
		return nil, err
	}
	return s.newSealer(sealingOf(d, key))
}

// sealingOf returns the sealing with which a recording began.
func sealingOf(d *liveRecordingDescription, key encryption.Key) encryption.Sealing {
	return encryption.Sealing{Enabled: true, Algorithm: d.Algorithm, Key: key}
}

// root returns the root under which an account's recording with the header is sealed.
func (s *seals) root(ctx context.Context, accountID string, h *envelope.Header) (*envelope.Root, error) {
	key, err := s.keys.Key(ctx, accountID, int64(h.KeyVersion))
	if err != nil {
		return nil, err
	}
	return s.roots.Root(key.Key, key.Salt, h.Iterations)
}

// errNotStoredObject is returned for an authentic recording with the same account and id
// that is not the stored one, such as one that was deleted before.
var errNotStoredObject = errors.New("the object is not the one that was stored")

// finder returns the function that finds the root for an object of r.
func (s *seals) finder(ctx context.Context, r *row) envelope.RootFinder {
	return func(h *envelope.Header) (*envelope.Root, error) {
		if base64.StdEncoding.EncodeToString(h.Salt[:]) != r.Salt || int64(h.KeyVersion) != r.KeyVersion ||
			h.KeyID != r.KeyID {
			return nil, errNotStoredObject
		}

		return s.root(ctx, r.AccountID, h)
	}
}
