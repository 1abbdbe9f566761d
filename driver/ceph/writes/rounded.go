package writes

import (
	"math"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Rounded is a number of bytes to two digits: a status that changed with each object would be written with each run.
func Rounded(bytes int64) *resource.Quantity {
	step := int64(1)
	for bytes/step >= 100 {
		step *= 10
	}
	return resource.NewQuantity(int64(math.Round(float64(bytes)/float64(step)))*step, resource.DecimalSI)
}
