package origination

import (
	"context"
	"errors"
	"strings"
	"testing"

	"trunkline/internal/fault"
)

// namingPlatform is a platform that names its calls.
type namingPlatform struct{ *platform }

func (namingPlatform) Name(_ context.Context, order Order) (string, error) {
	return "sim-" + order.ID, nil
}

func TestAutoTakesPhonesWhereThereAreSome(t *testing.T) {
	phones, simulator := newPlatform(), newPlatform()
	var asked error
	auto := &AutoDriver{
		Phones: phones, Simulator: namingPlatform{simulator},
		Registered: func(_ context.Context, account, extension string) (bool, error) {
			return account == "demo" && extension == "1001", asked
		},
		Simulated: func(id string) bool { return strings.HasPrefix(id, "sim-") },
	}

	for extension, want := range map[string]string{"1001": "o", "1002": "sim-o"} {
		order := Order{ID: "o", AccountID: "demo", Extension: extension}
		var err error
		order.ID, err = auto.Name(t.Context(), order)
		mustSucceed(t, err)
		placed, err := auto.Originate(t.Context(), order)
		if err != nil || placed.CallID != want {
			t.Errorf("%s: %+v, %v", extension, placed, err)
		}

		mustSucceed(t, auto.Cancel(t.Context(), want))
	}

	if len(phones.cancels()) != 1 || len(simulator.cancels()) != 1 {
		t.Error("a cancel went astray")
	}

	asked = errors.New("the registrar is away")
	_, err := auto.Name(t.Context(), Order{})
	wantKind(t, err, fault.KindUnavailable)

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- auto.Follow(ctx, []OpenCall{{CallID: "sim-1"}, {CallID: "2"}}, func(Progress) {})
	}()
	within(t, "both are followed", func() bool { return phones.follows() && simulator.follows() })

	if len(phones.open) != 1 || phones.open[0].CallID != "2" || len(simulator.open) != 1 ||
		simulator.open[0].CallID != "sim-1" {
		t.Errorf("phones have %v, the simulator %v", phones.open, simulator.open)
	}
	cancel()

	mustSucceed(t, <-done)

	adopted := make(chan []OpenCall, 1)
	auto.Simulator = adoptingPlatform{simulator, adopted}
	rest := auto.Adopt(t.Context(), []OpenCall{{CallID: "sim-1"}, {CallID: "2"}})
	if len(rest) != 1 || rest[0].CallID != "2" || len(<-adopted) != 1 {
		t.Errorf("the rest is %v", rest)
	}
}
