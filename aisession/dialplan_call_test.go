package aisession_test

import (
	"crypto/sha1"
	"encoding/hex"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"trunkline/aisession"
	"trunkline/config/aiprovider"
	"trunkline/internal/setting"
)

// A dialplan that has a provider's secret needs no announcement; its UUID is accepted once.
func TestACallOfADialplan(t *testing.T) {
	const secret = "0123456789abcdef"
	p := startProvider(t, 960, echoAudio)
	with := configOf(p, "pcm16")
	h := startService(t,
		settingsWith(func(s *aisession.Settings) { s.DialplanSecrets = setting.Secret(with.ID + "=" + secret) }), p)
	h.providers = map[string]aiprovider.Provider{with.ID: with}
	digits := strconv.FormatInt(time.Now().Unix(), 10) + "654321"
	sum := sha1.Sum([]byte(secret + digits))
	id := uuid.MustParse(digits + hex.EncodeToString(sum[:])[:16])
	a := dialAudioSocket(t, h)
	_ = a.send(0x01, id[:])
	start := p.nextConnection().waitFor(t, "start", 1)
	if want := `"callId":"` + id.String() + `"`; !strings.Contains(string(start.body), want) {
		t.Errorf("start: %s", start.body)
	}

	replay := a.again()
	_ = replay.send(0x01, id[:])
	if kind, _, err := replay.read(); err != nil || kind != 0 {
		t.Errorf("the same UUID again: kind %#x, %v; want a hang-up", kind, err)
	}
}
