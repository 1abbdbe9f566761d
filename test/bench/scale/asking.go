package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"time"
)

const (
	// asksCeph are the functions in which Ceph is asked: the driver's Observe with all that it calls, and those that carry questions and
	// answers to and from the child for librados, some of which run beside it. The child itself is another process, and not counted at all.
	asksCeph = `driver/ceph\.\(\*Driver\)\.Observe$|driver/ceph/rados\.`
	// inEngine are those of runs: reading, asking, planning, and the client's side of a write. The API's, etcd's and the collector's part of
	// the same work is done elsewhere.
	inEngine = `engine\.\(\*scheduler\)\.`
)

// readTimeout bounds the reading of a profile.
const readTimeout = time.Minute

// spentIn is the CPU time of a profile that was spent in some functions and what they call.
func spentIn(ctx context.Context, profile, functions string) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", "tool", "pprof", "-top", "-nodefraction=0", "-unit=ms", "-focus="+functions, profile).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("while reading profile %s: %w: %s", profile, err, out)
	}
	return accounted(string(out))
}

// accounting is what 'go tool pprof -top' says of the samples that it was asked for.
var accounting = regexp.MustCompile(`Showing nodes accounting for ([0-9.]+)(ms)?,`)

func accounted(top string) (time.Duration, error) {
	found := accounting.FindStringSubmatch(top)
	if found == nil {
		return 0, fmt.Errorf("'go tool pprof' does not say what it found: %.500s", top)
	}
	return time.ParseDuration(found[1] + "ms")
}
