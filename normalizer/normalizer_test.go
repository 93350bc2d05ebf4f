package normalizer

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"trunkline/internal/kafka"
)

func TestNewRefuses(t *testing.T) {
	k := newFakeKafka(1)
	deps := Deps{LogReader: k, Producer: k, Accounts: acmeOnly}
	for _, c := range []struct {
		cfg  Config
		deps Deps
	}{
		{Config{Topics: []string{"cc.evt"}}, deps},
		{Config{MaxRecordBytes: 10}, deps},
		{Config{}, Deps{LogReader: k}},
	} {
		if _, err := New(c.cfg, c.deps, prometheus.NewRegistry(), nil); err == nil {
			t.Errorf("%+v is taken", c.cfg)
		}
	}
}

func TestRunSaysWhyTheGroupFailed(t *testing.T) {
	n := newTestNormalizer(t, newFakeKafka(1), acmeOnly)
	n.deps.LogReader = failingLog{n.deps.LogReader}
	if err := n.Run(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
}

type failingLog struct{ kafka.Log }

func (failingLog) Work(context.Context, kafka.GroupConfig, func(context.Context, kafka.Assigned) error) error {
	return errAway
}
