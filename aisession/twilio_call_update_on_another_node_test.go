package aisession_test

import (
	"context"
	"log/slog"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"trunkline/aisession"
	"trunkline/internal/aiprotocol/dialect"
	"trunkline/internal/fault"
	"trunkline/internal/redisclient"
)

// TestAnUpdateReachesTheNodeWithTheCall asks for an update on a node that has no sessions.
func TestAnUpdateReachesTheNodeWithTheCall(t *testing.T) {
	h, run, bot := startWithVendor(t, dialect.Twilio, nil)
	callSID := bot.named(t, "start")["start"].(map[string]any)["callSid"].(string)
	client := redis.NewClient(&redis.Options{Addr: h.redis.Addr()})
	defer client.Close()

	other := &redisclient.HolderRequests[aisession.CallUpdate]{Client: client, Channel: "test:aisession:updates",
		Log: slog.New(slog.DiscardHandler)}
	unknown := fault.NotFound("unknown")
	update := aisession.CallUpdate{CallSID: "CA0", SecretSHA256: aisession.SecretSHA256("secret-1")}
	if err := other.Ask(t.Context(), update, unknown); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("no node: %v", err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var answering sync.WaitGroup
	answering.Go(func() { other.Answer(ctx, h.ApplyCallUpdate) })
	defer answering.Wait()
	defer stop()

	until(t, "the node to listen", func() bool {
		return len(h.redis.PubSubNumSub("test:aisession:updates")) > 0 &&
			h.redis.PubSubNumSub("test:aisession:updates")["test:aisession:updates"] > 0
	})

	if err := other.Ask(t.Context(), update, unknown); fault.KindOf(err) != fault.KindNotFound {
		t.Errorf("an unknown call: %v", err)
	}

	update.CallSID = callSID
	if err := other.Ask(t.Context(), update, unknown); err != nil {
		t.Error(err)
	}
	if e := run.wait(t); e.Reason != aisession.ProviderHungUp {
		t.Errorf("ended with %+v", e)
	}
}
