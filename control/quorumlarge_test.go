package control_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/holdfast-storage/holdfast/api/v1alpha1"
)

// TestQuorum_large: of twenty-one servers five hold a seat. One of them that is dead for good is replaced. When its Host was removed
// there are twenty, for which three would do, and none loses its seat for that: five survive more. The next one that dies takes
// another one with it, because four survive no more than three, and the etcd of that one is stopped.
func TestQuorum_large(t *testing.T) {
	t.Parallel()
	c := newCrew(t, "f", 3)
	for len(c.servers) < 21 {
		c.add("f")
	}
	five := c.voters(5)

	dead := c.die(five)
	replaced := c.voters(5)
	delete(five, dead)
	if !contains(replaced, five) || replaced[dead] {
		t.Errorf("%d died, of the servers %v that held a seat with it, and now hold one: %v", dead, five, replaced)
	}

	host := &api.Host{ObjectMeta: metav1.ObjectMeta{Name: c.configs[dead].Name}}
	if err := newClient(t, c.servers[0].Config()).Delete(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	delete(replaced, c.die(replaced))
	three := c.voters(3)
	if !contains(replaced, three) {
		t.Errorf("of the servers %v that held a seat these hold one now: %v", replaced, three)
	}
	maps.DeleteFunc(replaced, func(i int, _ bool) bool { return three[i] })
	for i := range replaced {
		c.standby(i)
	}
	newNamespace(t, newClient(t, c.servers[0].Config()))
	c.toldOnce(0)
}

func contains(all, some map[int]bool) bool {
	for i := range some {
		if !all[i] {
			return false
		}
	}
	return true
}

// voters waits until so many servers hold a seat, by the word of each of them, and says which.
func (c *crew) voters(want int) map[int]bool {
	c.t.Helper()
	began := time.Now()
	var seats map[int]bool
	eventually(c.t, func() error {
		seats = map[int]bool{}
		for i, s := range c.servers {
			switch got := s.Voters(); got {
			case 0: // a standby, or dead
			case want:
				seats[i] = true
			default:
				return fmt.Errorf("server %d knows of %d members that vote, want %d", i, got, want)
			}
		}
		if len(seats) != want {
			return fmt.Errorf("the servers %v hold a seat, want %d of them", seats, want)
		}
		return nil
	})
	for i := range seats {
		seated(c.t, want, c.servers[i])
	}
	c.t.Logf("the servers %v hold a seat after %.0f s", seats, time.Since(began).Seconds())
	return seats
}

// die stops one of these servers for good, not the first one, and has its agent be silent.
func (c *crew) die(of map[int]bool) int {
	c.t.Helper()
	for i := range c.servers {
		if i > 0 && of[i] {
			c.stops[i]()
			c.heard(0, i, metav1.ConditionFalse)
			return i
		}
	}
	c.t.Fatalf("none of the servers %v can die", of)
	return 0
}
