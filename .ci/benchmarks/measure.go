package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"regexp"
	"slices"
)

// measureAll measures what is wanted. It goes on after a failure, and returns all of them.
func (m *machine) measureAll(ctx context.Context, all *results, wanted *regexp.Regexp, rounds int, tree, oldTree string,
	save func() error) (failed error) {
	for _, s := range scenarios() {
		if !wanted.MatchString(s.name) || ctx.Err() != nil {
			continue
		}

		row := all.begin()
		failed = errors.Join(failed, m.measureScenario(ctx, row, s, rounds))
		all.end(ctx, s.name, row)
		failed = errors.Join(failed, save())
	}

	trees := map[string]string{ours: tree, old: oldTree}
	for _, g := range goBenchmarks() {
		if !wanted.MatchString(g.name()) || ctx.Err() != nil {
			continue
		}

		row := all.begin()
		for round := range rounds {
			for _, build := range g.builds() {
				log.Printf("round %d of %d: %s, %s", round+1, rounds, g.name(), build)
				values, err := m.runGo(ctx, trees[build], build, g)
				if err != nil {
					log.Print(err)
					failed = errors.Join(failed, err)
				}
				for name, value := range values {
					row.add(name, build, value)
				}
			}
		}
		all.end(ctx, g.name(), row)
		failed = errors.Join(failed, save())
	}

	return failed
}

func (m *machine) measureScenario(ctx context.Context, row *row, s scenario, rounds int) (failed error) {
	for round := range rounds {
		builds := slices.Clone(s.builds)
		if round%2 == 1 {
			slices.Reverse(builds) // no build is always the last
		}

		for _, build := range builds {
			r, err := m.run(ctx, s, build)
			if err != nil {
				err = fmt.Errorf("%s, %s: %w", s.name, build, err)
				log.Print(err)
				failed = errors.Join(failed, err)
				continue
			}

			text := ""
			for _, f := range s.figures {
				value := f.value(r)
				row.add(f.unit, build, value)
				text += fmt.Sprintf(", %s %s", short(value), f.unit)
			}
			log.Printf("round %d of %d: %s, %s%s", round+1, rounds, s.name, build, text)
		}
	}
	return failed
}
