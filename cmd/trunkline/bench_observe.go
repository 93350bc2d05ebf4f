package main

import (
	"context"
	"net/http"
	"time"

	"trunkline/internal/loadtest"
)

// observer watches the server's processes from outside.
type observer struct {
	pids    []int
	metrics []string
	client  *http.Client
}

func (o *observer) blind() bool { return len(o.pids) == 0 && len(o.metrics) == 0 }

// usage is that of all the server's processes. Where both are known, CPU and
// resident memory are the kernel's figures, and Go's heap the process's own.
// settled has Go processes collect their garbage first.
func (o *observer) usage(ctx context.Context, settled bool) (sum loadtest.Usage, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	for _, base := range o.metrics {
		u, err := loadtest.MetricsUsage(ctx, o.client, base, settled)
		if err != nil {
			return sum, err
		}
		if len(o.pids) > 0 {
			u = loadtest.Usage{Heap: u.Heap}
		}
		sum = sum.Add(u)
	}
	for _, pid := range o.pids {
		u, err := loadtest.ProcessUsage(pid)
		if err != nil {
			return sum, err
		}
		sum = sum.Add(u)
	}
	return sum, nil
}
