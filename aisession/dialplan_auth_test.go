package aisession

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
)

const supportSecret = "0123456789abcdef-support"

// dialplanUUID makes a UUID as the dialplan in docs/asterisk.md does.
func dialplanUUID(t *testing.T, secret string, at time.Time) uuid.UUID {
	t.Helper()
	digits := strconv.FormatInt(at.Unix(), 10) + "123456"
	sum := sha1.Sum([]byte(secret + digits))
	id, err := uuid.Parse(digits + hex.EncodeToString(sum[:])[:16])
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestUUIDsOfDialplans(t *testing.T) {
	secrets, err := parseDialplanSecrets("sales=0123456789abcdef-sales,\n support=" + supportSecret + "\n")
	if err != nil || len(secrets) != 2 {
		t.Fatalf("%d secrets, %v", len(secrets), err)
	}

	now := time.Unix(1795348574, 0)
	good := dialplanUUID(t, supportSecret, now)
	if got, err := checkDialplanUUID(secrets, good, now.Add(59*time.Second)); got != "support" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}

	later := good
	later[4]++ // of the time

	forged := good
	forged[15] ^= 1
	for name, c := range map[string]struct {
		id uuid.UUID
		at time.Time
	}{
		"expired": {good, now.Add(61 * time.Second)}, "from the future": {good, now.Add(-61 * time.Second)},
		"another hash": {forged, now}, "another time": {later, now},
		"another secret": {dialplanUUID(t, supportSecret+"x", now), now},
		"any UUID":       {uuid.New(), now}, "zero": {uuid.UUID{}, time.Unix(0, 0)},
	} {
		if got, err := checkDialplanUUID(secrets, c.id, c.at); got != "" || err == nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}

	if got, err := checkDialplanUUID(nil, good, now); got != "" || err == nil {
		t.Errorf("without secrets: got %q, %v", got, err)
	}
}

func TestDialplanSecretsAreChecked(t *testing.T) {
	for _, text := range []string{"support", "support=short", "=0123456789abcdef", "support=0123456789abcde$",
		"a=0123456789abcdef b=0123456789abcdef"} {
		_, err := parseDialplanSecrets(text)
		if err == nil {
			t.Errorf("%q was accepted", text)
		} else if strings.Contains(err.Error(), "0123456789abcde") {
			t.Errorf("the error has the secret: %v", err)
		}
	}
}
