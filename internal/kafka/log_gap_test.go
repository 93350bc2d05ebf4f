package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"trunkline/internal/kafka"
)

func TestAGapIsResolvedWithTheCheckOfThePosition(t *testing.T) {
	var (
		other     = errors.New("other")
		expired   = &kafka.GapError{Kind: kafka.GapExpired, Offset: 3, Resume: 5}
		truncated = &kafka.GapError{Kind: kafka.GapTruncated, Offset: 3, Resume: 2}
		recreated = &kafka.GapError{Kind: kafka.GapRecreated, Offset: 3}
		damaged   = &kafka.GapError{Kind: kafka.GapDamaged, Offset: 3, Resume: 3}
	)

	for name, c := range map[string]struct {
		read, check error
		gap         *kafka.GapError
		err         error
	}{
		"no gap":                          {other, truncated, nil, other},
		"records deleted":                 {expired, nil, expired, nil},
		"the check knows better":          {expired, recreated, recreated, nil},
		"the leader had not caught up":    {truncated, nil, nil, nil},
		"the check fails":                 {truncated, other, nil, other},
		"damage up to an unknown offset":  {damaged, nil, nil, damaged},
		"damage found by the check alone": {expired, damaged, nil, expired},
	} {
		gap, err := kafka.ConfirmGap(t.Context(), fmt.Errorf("reading: %w", c.read),
			func(context.Context) error { return c.check })
		if gap != c.gap || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, gap, err)
		}
	}
}
