package engine

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/millrace-dev/millrace/dynamotest/internal/apierror"
)

// Billing modes and throughput are stored and described, but do not throttle anything.

const maxCapacity = 1_000_000_000_000

func (c *constraints) billing(mode types.BillingMode) {
	oneOf(c, "billingMode", mode, types.BillingModeProvisioned, types.BillingModePayPerRequest)
}

func (c *constraints) throughput(at string, t *types.ProvisionedThroughput) {
	if t == nil {
		return
	}
	c.atLeast(at+".writeCapacityUnits", t.WriteCapacityUnits, 1)
	c.atLeast(at+".readCapacityUnits", t.ReadCapacityUnits, 1)
}

func checkCapacity(t *types.ProvisionedThroughput) error {
	if *t.ReadCapacityUnits > maxCapacity {
		return apierror.Validation("Given value %d for ReadCapacityUnits is out of bounds", *t.ReadCapacityUnits)
	}
	if *t.WriteCapacityUnits > maxCapacity {
		return apierror.Validation("Given value %d for WriteCapacityUnits is out of bounds", *t.WriteCapacityUnits)
	}
	return nil
}

// checkThroughput compares the throughput of a table with its billing mode.
func checkThroughput(billing types.BillingMode, t *types.ProvisionedThroughput, onDemand *types.OnDemandThroughput) error {
	if billing == types.BillingModePayPerRequest {
		if t != nil {
			return invalid("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST")
		}
		return checkOnDemand(onDemand)
	}
	if t == nil {
		return invalid("ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode is PROVISIONED")
	}
	if onDemand != nil {
		return invalid("OnDemandThroughput cannot be specified when BillingMode is PROVISIONED")
	}
	return checkCapacity(t)
}

func checkIndexThroughput(index string, billing types.BillingMode, t *types.ProvisionedThroughput, onDemand *types.OnDemandThroughput) error {
	if billing == types.BillingModePayPerRequest {
		if t != nil {
			return invalid("ProvisionedThroughput should not be specified for index: %s when BillingMode is PAY_PER_REQUEST", index)
		}
		return checkOnDemand(onDemand)
	}
	if t == nil {
		return invalid("ProvisionedThroughput must be specified for index: %s", index)
	}
	if onDemand != nil {
		return invalid("OnDemandThroughput cannot be specified for index: %s when BillingMode is PROVISIONED", index)
	}
	return checkCapacity(t)
}

// unlimited removes a maximum. Source: API Reference, OnDemandThroughput.
const unlimited = -1

func checkOnDemand(o *types.OnDemandThroughput) error {
	if o == nil {
		return nil
	}
	if o.MaxReadRequestUnits == nil && o.MaxWriteRequestUnits == nil {
		return invalid("Either MaxReadRequestUnits or MaxWriteRequestUnits must be specified in OnDemandThroughput")
	}
	for _, units := range []*int64{o.MaxReadRequestUnits, o.MaxWriteRequestUnits} {
		if units != nil && *units < 1 && *units != unlimited {
			return invalid("Given value %d in OnDemandThroughput is out of bounds", *units)
		}
	}
	return nil
}

func copyOfThroughput(t *types.ProvisionedThroughput) *types.ProvisionedThroughput {
	if t == nil {
		return nil
	}
	return &types.ProvisionedThroughput{
		ReadCapacityUnits: aws.Int64(*t.ReadCapacityUnits), WriteCapacityUnits: aws.Int64(*t.WriteCapacityUnits),
	}
}

func copyOfOnDemand(o *types.OnDemandThroughput) *types.OnDemandThroughput {
	if o == nil {
		return nil
	}
	copied := &types.OnDemandThroughput{MaxReadRequestUnits: aws.Int64(unlimited), MaxWriteRequestUnits: aws.Int64(unlimited)}
	if o.MaxReadRequestUnits != nil {
		copied.MaxReadRequestUnits = aws.Int64(*o.MaxReadRequestUnits)
	}
	if o.MaxWriteRequestUnits != nil {
		copied.MaxWriteRequestUnits = aws.Int64(*o.MaxWriteRequestUnits)
	}
	return copied
}

// describeThroughput returns zeros for on-demand billing.
func describeThroughput(t *types.ProvisionedThroughput) *types.ProvisionedThroughputDescription {
	d := &types.ProvisionedThroughputDescription{
		NumberOfDecreasesToday: aws.Int64(0), ReadCapacityUnits: aws.Int64(0), WriteCapacityUnits: aws.Int64(0),
	}
	if t != nil {
		d.ReadCapacityUnits, d.WriteCapacityUnits = aws.Int64(*t.ReadCapacityUnits), aws.Int64(*t.WriteCapacityUnits)
	}
	return d
}
