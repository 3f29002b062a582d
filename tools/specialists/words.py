"""Numbers and calendar names in Italian and English words."""

_IT_UNITS = ('zero uno due tre quattro cinque sei sette otto nove dieci undici dodici tredici quattordici quindici sedici '
             'diciassette diciotto diciannove').split()
_IT_TENS = '_ _ venti trenta quaranta cinquanta sessanta settanta ottanta novanta'.split()
_EN_UNITS = ('zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen '
             'seventeen eighteen nineteen').split()
_EN_TENS = '_ _ twenty thirty forty fifty sixty seventy eighty ninety'.split()

MONTHS_IT = ('gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre').split()
MONTHS_EN = ('January February March April May June July August September October November December').split()
DAYS_IT = 'lunedì martedì mercoledì giovedì venerdì sabato domenica'.split()
DAYS_EN = 'Monday Tuesday Wednesday Thursday Friday Saturday Sunday'.split()


def italian(number):
    """0 to 999,999,999 in Italian words."""
    if number >= 1_000_000:
        millions, rest = divmod(number, 1_000_000)
        head = 'un milione' if millions == 1 else f'{italian(millions)} milioni'
        return head if rest == 0 else f'{head} {italian(rest)}'
    if number >= 1000:
        thousands, rest = divmod(number, 1000)
        head = 'mille' if thousands == 1 else italian(thousands) + 'mila'
        return head + (italian(rest) if rest else '')
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        head = 'cento' if hundreds == 1 else _IT_UNITS[hundreds] + 'cento'
        return head + (italian(rest) if rest else '')
    if number < 20:
        return _IT_UNITS[number]
    tens, unit = divmod(number, 10)
    head = _IT_TENS[tens]
    if unit in (1, 8):
        head = head[:-1]
    return head if unit == 0 else head + ('tré' if unit == 3 else _IT_UNITS[unit])


def english(number):
    """0 to 999,999,999 in English words."""
    for size, name in ((1_000_000, 'million'), (1000, 'thousand')):
        if number >= size:
            head, rest = divmod(number, size)
            return f'{english(head)} {name}' + (f' {english(rest)}' if rest else '')
    if number >= 100:
        hundreds, rest = divmod(number, 100)
        return f'{_EN_UNITS[hundreds]} hundred' + (f' and {english(rest)}' if rest else '')
    if number < 20:
        return _EN_UNITS[number]
    tens, unit = divmod(number, 10)
    return _EN_TENS[tens] + (f'-{_EN_UNITS[unit]}' if unit else '')


def grouped(number):
    """1234567 as 1.234.567."""
    return f'{number:,}'.replace(',', '.')
