"""Forecasts of series: dates or numbers with values, and what comes next.

axis        dates and numbers as numbers, steps and missing times
periods     which patterns come back, from the calendar and the spectrum
shapes      the kernels that compete
members     one shape on one scale, fitted by evidence, and tested from earlier times
study       which scale, breaks, seasons and shapes
mixture     members together, and bands as wide as the back-test says
words       what was found, in sentences
answer      `Forecast`; pictures and page draw it
door        `forecast(times, values)`
"""

from mercer.series.answer import Forecast
from mercer.series.door import forecast

__all__ = ["Forecast", "forecast"]
