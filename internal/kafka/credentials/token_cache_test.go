package credentials

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestTokensAreKeptForHalfTheirLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issued, away := 0, false
		cache := newTokenCache(func(context.Context) (bearerToken, error) {
			if away {
				return bearerToken{}, errors.New("away")
			}
			issued++
			return bearerToken{strconv.Itoa(issued), time.Now(), time.Now().Add(time.Hour)}, nil
		}, slog.New(slog.DiscardHandler))

		want := func(text string) {
			t.Helper()
			if got, err := cache.get(t.Context()); got != text || (err == nil) != (text != "") {
				t.Errorf("token %q, %v; want %q", got, err, text)
			}
		}

		want("1")
		time.Sleep(29 * time.Minute)
		want("1")
		time.Sleep(2 * time.Minute)
		want("2")
		away = true
		time.Sleep(31 * time.Minute)
		want("2") // until it expires
		away = false
		want("2") // the endpoint has its rest
		time.Sleep(2 * tokenRetryInterval)
		want("3")
		away = true
		time.Sleep(time.Hour)
		want("")
		away = false
		want("")
		time.Sleep(2 * tokenRetryInterval)
		want("4")
	})
}
