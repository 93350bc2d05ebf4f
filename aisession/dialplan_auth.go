package aisession

import (
	"context"
	"crypto/sha1"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"trunkline/config/aiprovider"
	"trunkline/internal/fault"
)

// A dialplan that has a provider's secret signs a call's UUID itself: ten digits of the time in Unix
// seconds, six random digits, and the first 16 hexadecimal digits of SHA1(secret + those 16 digits).
// Asterisk has no HMAC; the text's fixed length prevents SHA-1 length-extension attacks. A UUID is
// accepted once, within dialplanWindow of its time.
const (
	signedDigits   = 16 // the time and the random digits
	timeDigits     = 10
	dialplanWindow = time.Minute
)

var dialplanSecretPattern = regexp.MustCompile(`^([^=]+)=([A-Za-z0-9._-]{16,128})$`)

// dialplanSecret is the shared secret of one provider.
type dialplanSecret struct{ providerID, secret string }

// parseDialplanSecrets parses Settings.DialplanSecrets. Its error does not contain a secret.
func parseDialplanSecrets(text string) ([]dialplanSecret, error) {
	var secrets []dialplanSecret
	seen := make(map[string]bool)
	for i, item := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(", \t\r\n", r) }) {
		parts := dialplanSecretPattern.FindStringSubmatch(item)
		if parts == nil {
			return nil, fmt.Errorf(
				"item %d is not written PROVIDER_ID=SECRET with a secret of 16 to 128 letters, digits or . _ -", i+1)
		}
		if seen[parts[2]] {
			return nil, fmt.Errorf("item %d has the secret of another provider", i+1)
		}

		seen[parts[2]] = true
		secrets = append(secrets, dialplanSecret{parts[1], parts[2]})
	}

	return secrets, nil
}

var errUnannounced = errors.New("no such call was announced")

// acceptDialplanUUID checks a UUID that a dialplan signed, records its use and returns the provider.
func (s *Service) acceptDialplanUUID(ctx context.Context,
	id uuid.UUID) (a aiprovider.Announcement, p aiprovider.Provider, err error) {
	providerID, err := checkDialplanUUID(s.dialplanSecrets, id, time.Now())
	if err != nil {
		s.metrics.rejectedUUIDs.Inc()
		return a, p, &fault.Error{Kind: fault.KindNotFound, Message: err.Error()}
	}

	// The UUID is stored for as long as it could be accepted again. The prefix keeps it apart from
	// announcements.
	created, err := s.deps.Announcements.Put(ctx,
		aiprovider.Announcement{UUID: "used:" + id.String(), ProviderID: providerID}, 2*dialplanWindow+time.Minute)
	if err != nil {
		return a, p, fault.Unavailable(err, time.Second, "calls of dialplans cannot be checked now")
	}

	if !created {
		s.metrics.rejectedUUIDs.Inc()
		return a, p, fault.NotFound("the dialplan's UUID was used before")
	}

	p, err = s.deps.Providers.Open(ctx, providerID)
	return aiprovider.Announcement{ProviderID: providerID, AccountID: p.AccountID, UUID: id.String()}, p, err
}

// checkDialplanUUID returns the provider whose secret signed the UUID.
func checkDialplanUUID(secrets []dialplanSecret, id uuid.UUID, now time.Time) (providerID string, err error) {
	text := hex.EncodeToString(id[:])
	seconds, err := strconv.ParseInt(text[:timeDigits], 10, 64)
	if err != nil || strings.Trim(text[:signedDigits], "0123456789") != "" {
		return "", errUnannounced
	}

	for _, s := range secrets {
		sum := sha1.Sum([]byte(s.secret + text[:signedDigits]))
		if subtle.ConstantTimeCompare([]byte(hex.EncodeToString(sum[:])[:len(text)-signedDigits]),
			[]byte(text[signedDigits:])) == 1 {
			providerID = s.providerID
		}
	}

	if providerID == "" {
		return "", errUnannounced
	}

	clockDifference := now.Sub(time.Unix(seconds, 0)).Abs()
	if clockDifference > dialplanWindow {
		return "", fmt.Errorf("the dialplan's UUID is from another time: Asterisk's clock and this one differ by %s",
			clockDifference.Round(time.Second))
	}

	return providerID, nil
}
