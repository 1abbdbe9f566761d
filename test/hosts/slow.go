package hosts

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// ErrNoNetem is returned by Slow where the kernel cannot delay packets.
var ErrNoNetem = errors.New("this kernel has no netem (CONFIG_NET_SCH_NETEM): links cannot be made slow here")

// Slow delays every packet from and to the host, and loses the given share of them (0 to 1), until Restore. It returns
// ErrNoNetem where the kernel cannot do so, as that is no fault of what is tested.
func (h *Host) Slow(delay time.Duration, loss float64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	// It is noted before it is done, so that Restore undoes also one half of it.
	h.slow = true
	err := h.netem("replace", "delay", fmt.Sprintf("%dus", delay.Microseconds()), "loss", fmt.Sprintf("%g%%", loss*100))
	if errors.Is(err, ErrNoNetem) {
		h.slow = false
	}
	return err
}

// netem changes the queueing discipline at both ends of the cable, as each delays only what it sends.
func (h *Host) netem(verb string, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	outer := exec.CommandContext(ctx, "tc", append([]string{"qdisc", verb, "dev", h.link(), "root", "netem"}, args...)...)
	out, err := outer.CombinedOutput()
	if err == nil {
		out, err = h.Command(ctx, "tc", append([]string{"qdisc", verb, "dev", "eth0", "root", "netem"}, args...)...).CombinedOutput()
	}
	switch text := strings.TrimSpace(string(out)); {
	case err == nil:
		return nil
	case strings.Contains(text, "qdisc kind is unknown"):
		return ErrNoNetem
	case verb == "del" && strings.Contains(text, "zero handle"): // there was nothing to undo at this end
		return nil
	default:
		return fmt.Errorf("while changing the speed of host %s's link: %w: %s", h.Name, err, text)
	}
}
